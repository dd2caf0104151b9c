package dashboard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/bench/internal/browser"
	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/client"
)

// screen is a screenshot of the documentation.
type screen struct {
	file, path string
	until      string // it shows
	then       string // evaluated before the picture, until it is true
	types      string // typed after that, until the page shows the text in shows twice
	shows      string
	look       browser.Look
}

var desktop, phone, tablet = browser.Look{Width: 1440, Height: 900}, browser.Look{Width: 390, Height: 844}, browser.Look{Width: 768, Height: 1024}

// shoot takes the screenshots: of the demo with some more tasks, of work that lands,
// of a terminal, and of the login.
func (r *rig) shoot(ctx context.Context, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, part := range []func(context.Context, string) error{r.shootDemo, r.shootWork, r.shootTerminal, r.shootLogin} {
		if err := part(ctx, folder); err != nil {
			return err
		}
	}
	return nil
}

// server starts a role of the binary in its own folder.
func (r *rig) server(ctx context.Context, args ...string) (*director.Process, error) {
	if err := os.MkdirAll(filepath.Join(r.dir, args[0]), 0o700); err != nil {
		return nil, err
	}
	return director.Start(r.command(ctx, args[0], append(args, "--addr", "127.0.0.1:0")...))
}

// command returns a run of the binary with the home folder of a role.
func (r *rig) command(ctx context.Context, role string, args ...string) *exec.Cmd {
	home := filepath.Join(r.dir, role)
	cmd := exec.CommandContext(ctx, r.binary, args...)
	cmd.Dir, cmd.Env = home, append(os.Environ(), "HOME="+home, "TMPDIR="+home, "SIGNALBOX_HOME="+filepath.Join(home, ".signalbox"), "SHELL=/bin/sh")
	return cmd
}

func (r *rig) shootDemo(ctx context.Context, folder string) error {
	d, err := r.server(ctx, "demo", "--pace", "1h")
	if err != nil {
		return err
	}
	defer d.Stop()
	files, err := filepath.Glob(filepath.Join(r.dir, "demo", "signalbox-demo-*", "token"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("the token of the demo: %v, %w", files, err)
	}
	token, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	c, err := client.New(d.URL, client.Options{Token: strings.TrimSpace(string(token))})
	if err != nil {
		return err
	}
	failed, waiting, err := furnish(ctx, c)
	if err != nil {
		return err
	}
	task, err := c.Task(ctx, failed)
	if err != nil {
		return err
	}
	talk := "/ui/agents/coder/conversations/" + task.SessionID
	const why = `document.querySelector(".why-gate")`
	link := func() (string, error) { // each logs one browser in
		cmd := r.command(ctx, "demo", "login-link", "--director", d.URL)
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	return r.take(folder, d.URL, link, []screen{
		{file: "now.png", path: "/ui/", until: why + ` && document.querySelector(".card-pressure canvas")`},
		{file: "now-dark.png", path: "/ui/", until: why + ` && document.querySelector(".card-pressure canvas")`, look: browser.Look{Dark: true}},
		{file: "now-phone.png", path: "/ui/", until: `document.querySelectorAll(".lane").length > 2`, look: phone},
		{file: "now-tablet.png", path: "/ui/", until: `document.querySelectorAll(".lane").length > 2`, look: tablet},
		{file: "conversation.png", path: talk, until: `document.querySelector(".turn-answer")`},
		{file: "conversation-phone.png", path: talk, until: `document.querySelector(".turn-answer")`, look: phone},
		{file: "tasks.png", path: "/ui/tasks", until: `document.querySelectorAll(".table-tasks .row").length > 5`},
		{file: "task-why.png", path: "/ui/tasks/" + waiting, until: why},
		{file: "task-failed.png", path: "/ui/tasks/" + failed, until: `document.querySelector(".output-box").childElementCount > 1`},
		{file: "task-phone.png", path: "/ui/tasks/" + failed, until: `document.querySelector(".output-box").childElementCount > 1`, look: phone},
		{file: "agents.png", path: "/ui/agents", until: `document.querySelectorAll(".agent-row").length === 3`},
		{file: "agent.png", path: "/ui/agents/coder", until: `document.querySelectorAll(".run-bar-row").length > 2`},
		{file: "capacity.png", path: "/ui/capacity", until: `document.querySelectorAll(".calls li").length > 1`},
		{file: "schedules.png", path: "/ui/schedules", until: `document.querySelectorAll(".listing-schedules tbody tr").length > 1`},
		{file: "usage.png", path: "/ui/usage", until: `document.querySelector("main canvas")`},
		{file: "users.png", path: "/ui/users", until: `document.querySelectorAll(".listing-users tbody tr").length > 1`},
		{file: "tokens.png", path: "/ui/tokens", until: `document.querySelectorAll(".listing-tokens tbody tr").length > 1`},
		{file: "audit.png", path: "/ui/audit", until: `document.querySelectorAll(".audit-item").length > 2`,
			then: `(() => { const one = [...document.querySelectorAll(".audit-open")].find((b) => /pause/.test(b.parentElement.innerText)); if (document.querySelector(".audit-change, .audit-all")) return true; one.click(); return false; })()`},
	})
}

// furnish gives the demo a history and current tasks.
func furnish(ctx context.Context, c *client.Client) (failed, waiting string, err error) {
	submit := func(agent, source, text string) string {
		var got api.SubmitResponse
		if err == nil {
			got, err = c.Submit(ctx, api.SubmitRequest{Prompt: text, Agent: agent, Source: source}, client.SubmitOptions{})
		}
		return got.QueueID
	}
	for id, role := range map[string]string{"keeper": "admin", "clerk": "user"} {
		if _, err := c.PutUser(ctx, id, api.PutUser{Role: role, Password: client.NewIdempotencyKey()}); err != nil {
			return "", "", err
		}
	}
	if _, err := c.CreateToken(ctx, api.NewToken{Name: "nightly-build", Scopes: []string{"submit", "read"}, ExpiresInSeconds: 90 * 24 * 3600}); err != nil {
		return "", "", err
	}
	if _, err := c.CreateSchedule(ctx, api.NewSchedule{
		Name: "dependency-review", Description: "What changed in what we build on", Message: "Review the dependencies and open a task for each that is old\nsleep 2s",
		CronExpression: "30 6 * * 1-5", Timezone: "Europe/Berlin", Kind: "demo", Overlap: "skip",
	}); err != nil {
		return "", "", err
	}
	if _, err := c.TriggerSchedule(ctx, "dependency-review"); err != nil {
		return "", "", err
	}
	for _, text := range []string{"Sort the bug reports of the week", "Check the links of the manual", "Rename the configuration keys", "Shorten the onboarding page", "Remove the dead feature flags", "Find the first report of the outage"} {
		submit("coder", "cli", text+"\n\nsleep 400ms")
	}
	failed = submit("coder", "web", "Migrate the test database\n\nsleep 1s, exit 2")
	if err != nil {
		return "", "", err
	}
	if _, err := c.Wait(ctx, failed); err != nil {
		return "", "", err
	}
	if _, err := c.Pause(ctx, api.PauseRequest{Queue: "agent:researcher", Reason: "the search engine is being moved"}); err != nil {
		return "", "", err
	}
	if err := sleep(ctx, 40*time.Second); err != nil { // the pressure chart needs a few samples
		return "", "", err
	}
	submit("coder", "cli", "Upgrade the billing service and run its tests\n\nsleep 2s, call search_code for 60s, call search_code for 60s")
	submit("writer", "web", "Draft the release notes from the merged changes\n\nsleep 3s, call search_code for 60s, call search_code for 60s")
	waiting = submit("coder", "web", "Fix the flaky login test\n\nsleep 6s")
	submit("coder", "web", "Add a limit to the upload form\n\nsleep 5s")
	submit("researcher", "web", "Compare three vector databases\n\nsleep 5s")
	submit("writer", "cli", "Answer the question about quotas\n\nsleep 5s")
	if err == nil {
		err = sleep(ctx, 5*time.Second) // until one waits for the other's slot
	}
	return failed, waiting, err
}

// coder is a stand-in for a coding CLI: it changes a file of the repository.
const coder = `cat > cart.go <<'END'
package shop

import "errors"

// ErrEmpty is the error of a cart in which there is nothing.
var ErrEmpty = errors.New("the cart is empty")

// Total is the sum of all prices, in cents, with tax.
func (c *Cart) Total(tax int) (int, error) {
	if len(c.items) == 0 {
		return 0, ErrEmpty
	}
	sum := 0
	for _, i := range c.items {
		sum += i.price * i.count // each as often as it is there
	}
	return sum * (100 + tax) / 100, nil
}
END
echo "The total has the tax now, and an empty cart is an error."
`

const cart = `package shop

// Total is the sum of all prices, in cents.
func (c *Cart) Total() int {
	sum := 0
	for _, i := range c.items {
		sum += i.price
	}
	return sum
}
`

// shootWork takes the screenshots of an agent's work in a repository and its landing.
func (r *rig) shootWork(ctx context.Context, folder string) error {
	d, err := r.server(ctx, "director", "--open", "--grace", "0s")
	if err != nil {
		return err
	}
	defer d.Stop()
	shop := filepath.Join(r.dir, "director", "shop")
	if err := os.MkdirAll(shop, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(shop, "cart.go"), []byte(cart), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.name", "You"}, {"config", "user.email", "you@example.com"}, {"add", "-A"}, {"commit", "-qm", "Begin"}} {
		git := exec.CommandContext(ctx, "git", args...)
		git.Dir = shop
		if out, err := git.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	agent, err := director.Start(r.command(ctx, "director", "agent", "--name", "coder", "--addr", "127.0.0.1:0", "--director", d.URL,
		"--workdir", shop, "--workspace", "worktree", "--", "/bin/sh", "-c", coder, "{prompt}"))
	if err != nil {
		return err
	}
	defer agent.Stop()
	c, err := client.New(d.URL, client.Options{})
	if err != nil {
		return err
	}
	for {
		if agents, err := c.Agents(ctx); err != nil || len(agents) > 0 {
			break
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	got, err := c.Submit(ctx, api.SubmitRequest{
		Prompt: "The total of the cart must have the tax, and an empty cart must be an error", Agent: "coder", Land: "main", FastForward: true,
		Checks: []api.TaskCheck{{Name: "format", Run: "test -s cart.go"}, {Name: "commits", Run: "git log -1 --format=%s"}},
	}, client.SubmitOptions{})
	if err != nil {
		return err
	}
	landed := `document.body.innerText.includes("landed on main")`
	colours := `document.querySelector(".diff .code-keyword")`
	return r.take(folder, d.URL, nil, []screen{
		{file: "landing.png", path: "/ui/tasks/" + got.QueueID, until: landed + " && " + colours},
		{file: "diff.png", path: "/ui/tasks/" + got.QueueID, until: colours, then: `(() => { document.querySelector(".diff").scrollIntoView({ block: "start" }); return true; })()`},
		{file: "diff-phone.png", path: "/ui/tasks/" + got.QueueID, until: colours, then: `(() => { document.querySelector(".diff").scrollIntoView({ block: "start" }); return true; })()`, look: phone},
	})
}

func (r *rig) shootTerminal(ctx context.Context, folder string) error {
	d, err := r.server(ctx, "up", "--open", "--agents", "demo", "--terminal", "--grace", "0s", "--on-shutdown", "stop")
	if err != nil {
		return err
	}
	defer d.Stop()
	press := func(selector, words string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(%q)].find((e) => (e.ariaLabel ?? e.innerText).includes(%q))?.click()`, selector, words)
	}
	return r.take(folder, d.URL, nil, []screen{{
		file: "terminal.png", path: "/ui/agents/demo", until: `document.querySelector(".page-head .menu button")`,
		then: `(() => {
			const screen = document.querySelector(".xterm-rows");
			if (screen && /[$#]/.test(screen.innerText)) return true;
			if (!document.querySelector("[role=menu], .terminal")) ` + press(".page-head .menu button", "Actions") + `;
			else if (!document.querySelector(".terminal")) ` + press("[role=menuitem]", "Terminal") + `;
			return false; })()`,
		types: "echo the shell of the agent", shows: "the shell of the agent",
	}})
}

func (r *rig) shootLogin(ctx context.Context, folder string) error {
	d, err := r.server(ctx, "director", "--token", "a-token-for-a-picture", "--grace", "0s")
	if err != nil {
		return err
	}
	defer d.Stop()
	return r.take(folder, d.URL, nil, []screen{{file: "login.png", path: "/login", until: `!document.querySelector("#login").hidden`, look: browser.Look{Width: 800, Height: 520}}})
}

// take makes pictures; link, if set, returns an address that logs a browser in.
func (r *rig) take(folder, address string, link func() (string, error), all []screen) error {
	for _, s := range all {
		look := s.look
		if look.Width == 0 {
			look.Width, look.Height = desktop.Width, desktop.Height
		}
		page, err := r.browser.Open(look)
		if err != nil {
			return err
		}
		if link != nil {
			err = logIn(page, link)
		}
		if err == nil {
			err = r.takeOne(page, folder, address, s)
		}
		page.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
	}
	return nil
}

func logIn(page *browser.Page, link func() (string, error)) error {
	address, err := link()
	if err == nil {
		err = page.Go(address)
	}
	if err == nil {
		err = page.Until(`location.pathname.startsWith("/ui")`)
	}
	return err
}

func (r *rig) takeOne(page *browser.Page, folder, address string, s screen) error {
	if err := page.Go(address + s.path); err != nil {
		return err
	}
	for _, condition := range []string{`document.readyState === "complete"`, s.until, s.then} {
		if condition == "" {
			continue
		}
		if err := page.Until(condition); err != nil {
			return err
		}
	}
	if s.types != "" {
		if err := page.Type(s.types); err != nil {
			return err
		}
		if err := page.Until(fmt.Sprintf("document.body.innerText.split(%q).length > 2", s.shows)); err != nil {
			return err
		}
	}
	shot, err := page.Shot()
	if err != nil {
		return err
	}
	small, err := packed(shot)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%-20s %4d KB\n", s.file, len(small)/1000)
	return os.WriteFile(filepath.Join(folder, s.file), small, 0o644)
}
