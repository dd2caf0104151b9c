package agentd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// helperFlag makes the test binary act as a program that an agent runs.
const helperFlag = "signalbox-test-helper-"

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// helper plays the role for which the test binary was started, if any.
func helper() bool {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], helperFlag) {
		return false
	}
	switch role, args := strings.TrimPrefix(os.Args[1], helperFlag), os.Args[2:]; role {
	case "echo":
		fmt.Println(strings.Join(args, "|"))
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "pwd":
		dir, _ := os.Getwd()
		fmt.Println(dir, os.Getenv("HOME"))
	case "fail":
		fmt.Fprintln(os.Stderr, "the disk is on fire")
		os.Exit(3)
	case "flood":
		n, _ := strconv.Atoi(args[0])
		line := strings.Repeat("x", 63) + "\n"
		for range n / 64 {
			_, _ = os.Stdout.WriteString(line)
		}
	case "binary":
		_, _ = os.Stdout.Write([]byte("ok \xff\xfe \xc3\xa9 end\n"))
	case "hang":
		fmt.Println("hanging")
		block()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Println("hanging")
		block()
	case "polite":
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, syscall.SIGTERM)
		fmt.Println("hanging")
		<-ch
		fmt.Println("goodbye")
	case "holder": // exits at once; a child keeps its standard output open
		child("stubborn", nil)
		fmt.Println("parent done")
	case "escape": // exits at once; a grandchild in a session of its own lives on
		child("escape2", nil)
		fmt.Println("parent done")
		block()
	case "escape2":
		child("stubborn", ownSession())
	case "daemon":
		serveDaemon(args[0])
	default:
		fmt.Fprintln(os.Stderr, "unknown role", role)
		os.Exit(99)
	}
	return true
}

// block waits for a signal to end the process; the runtime would report a
// bare select as a deadlock.
func block() {
	for {
		time.Sleep(time.Hour)
	}
}

func child(role string, attr *syscall.SysProcAttr) {
	cmd := exec.Command(os.Args[0], helperFlag+role)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, attr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(98)
	}
}

// serveDaemon runs a complete daemon as a process, for tests that kill it.
func serveDaemon(config string) {
	var cfg agentd.Config
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(97)
		}
	}
	fail(json.Unmarshal([]byte(config), &cfg))
	d, err := agentd.New(cfg)
	fail(err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	fail(err)
	fmt.Println(ln.Addr())
	fail(d.Serve(context.Background(), ln))
}
