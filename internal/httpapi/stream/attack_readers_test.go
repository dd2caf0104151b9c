package stream_test

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// Many clients that open a stream and read nothing cost limited memory: data is not buffered for
// each of them, and they are disconnected.
func TestAttackManyReadersThatNeverRead(t *testing.T) {
	const readers, rounds, most = 200, 40, 48 << 20
	for _, path := range []string{"/api/events", "/api/live"} {
		t.Run(strings.TrimPrefix(path, "/api/"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 10_000 })
				p, stop := apitest.ServePipes(t, b)
				var conns []net.Conn
				for range readers {
					c := p.Dial(t)
					apitest.WriteString(t, c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
					conns = append(conns, c)
				}
				synctest.Wait()
				if n := b.Server.OpenStreams(); n != readers {
					t.Fatalf("%d streams", n)
				}
				before := heap()
				text := strings.Repeat("x", 2000)
				for i := range rounds {
					for range 25 { // 2 MB in all; buffered for each reader it would be 400 MB
						b.Submit(fmt.Sprintf(`{"prompt":"%d %s"}`, i, text))
					}
					time.Sleep(10 * time.Millisecond)
					synctest.Wait()
				}
				if grown := heap() - before; grown > most {
					t.Errorf("%d readers that take nothing cost %d MiB", readers, grown>>20)
				}
				time.Sleep(httpio.WriteTimeout + httpio.KeepAliveEvery)
				synctest.Wait()
				if n := b.Server.OpenStreams(); n != 0 {
					t.Errorf("%d streams are still open", n)
				}
				for _, c := range conns {
					c.Close()
				}
				stop()
			})
		})
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
