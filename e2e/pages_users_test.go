package e2e_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Users and tokens are created, changed and ended on their pages by admins; each user
// changes their own password.
func TestUsersAndTokensOnTheirPages(t *testing.T) {
	s := newStage(t)
	const first, second = "a right long password", "another right long one"
	p := s.ownWindow(s.d.url).tab("/ui/users")
	p.allow("400", "403")
	p.showsIn(".empty", "No users yet")
	p.click("button", "New user")
	p.fill("Name to log in with", "clerk")
	p.fill("Password", "short")
	p.click("dialog button", "Create user")
	p.showsIn("dialog .wrong", "12 to 1024 bytes")
	p.fill("Password", first)
	p.fill("Only these agents", "coder, writer")
	p.click("dialog button", "Create user")
	row := `tr[aria-label="User clerk"]`
	p.showsIn(row, "coder, writer")
	p.showsIn(row, "active")

	// The clerk changes the password, stays logged in, and sees no admin page.
	w := s.window(s.d.url)
	clerk := w.tabWith("/login", tabOptions{})
	clerk.allow("400", "401", "403")
	clerk.fill("User", "clerk")
	clerk.fill("Password", first)
	clerk.keys(kb.Enter)
	clerk.at("/ui/")
	clerk.live()
	clerk.click(".top button", "clerk")
	clerk.hides("[role=menu]", "Tokens")
	clerk.click("[role=menuitem]", "Change password…")
	clerk.fill("Current password", "a wrong long password")
	clerk.fill("New password", second)
	clerk.fill("New password again", "something else of length")
	clerk.click("dialog button", "Change it")
	clerk.showsIn("dialog .wrong", "The passwords differ")
	clerk.fill("New password again", second)
	clerk.click("dialog button", "Change it")
	clerk.showsIn("dialog .wrong", "that is not your password")
	clerk.fill("Current password", first)
	clerk.click("dialog button", "Change it")
	clerk.noDialog()
	clerk.goTo("/ui/users")
	clerk.showsIn("main", "This is for admins")
	clerk.live()
	if _, err := s.c.Login(s.ctx(), "clerk", first); err == nil {
		t.Error("the old password still works")
	}

	// A token: its secret is shown once, works, and stops working when it is
	// revoked.
	p.goTo("/ui/tokens")
	p.click("button", "New token")
	p.fill("Name", "ci")
	p.click("dialog button", "Create token")
	p.showsIn("dialog", "This is shown only once")
	secret := strings.TrimSpace(p.text("dialog .secret"))
	if code, said := s.ask("GET", s.d.url+"/api/queue", "", "Authorization", "Bearer "+secret); code != 200 {
		t.Errorf("the new token is not accepted: %d %s", code, said)
	}
	p.click("dialog button", "I have kept it")
	p.showsIn(`tr[aria-label="Token ci"]`, "service ci")
	p.hides("main", secret)
	p.click(`tr[aria-label="Token ci"] button`, "Actions for ci")
	p.click("[role=menuitem]", "Revoke…")
	p.click("dialog button", "Revoke")
	p.until("it is not listed any more", `!document.querySelector('tr[aria-label="Token ci"]')`)
	if code, _ := s.ask("GET", s.d.url+"/api/queue", "", "Authorization", "Bearer "+secret); code != 401 {
		t.Errorf("the revoked token is answered with %d", code)
	}
	p.choose("Show", "all")
	p.showsIn(`tr[aria-label="Token ci"]`, "revoked")

	// When the clerk is disabled, the login ends.
	p.goTo("/ui/users")
	p.click(row+" button", "Actions for clerk")
	p.click("[role=menuitem]", "Disable…")
	p.click("dialog button", "Disable")
	p.showsIn(row, "disabled")
	clerk.at("/login?next=/ui/users")
	if users, err := s.c.Users(s.ctx()); err != nil || len(users) != 1 || !users[0].Disabled {
		t.Errorf("the API has %+v, %v", users, err)
	}
}
