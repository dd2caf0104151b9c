package e2e_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox/client"
)

// Users chat with an agent on its page: the first message begins a conversation, later
// ones continue it, and each turn is shown with its answer.
func TestAConversation(t *testing.T) {
	s := newStage(t, "coder")
	p := s.open("/ui/agents/coder")
	p.click("a", "New conversation")
	p.at("/ui/agents/coder/conversations/new")
	p.fill("Message to coder", "say hello")
	p.click(".message button", "Send")
	p.until("it has an address of its own", `/^\/ui\/agents\/coder\/conversations\/(?!new$)[\w-]+$/.test(location.pathname)`)
	p.showsIn(".turn-asked", "say hello")
	p.until("the answer is there", `document.querySelector(".turn-answer .markdown")?.textContent.length > 0`)
	p.fill("Message to coder", "and again")
	p.click(".message button", "Send")
	p.until("the second turn is answered", `document.querySelectorAll(".turn-answer .markdown").length === 2`)
	p.until("the box is empty", `document.querySelector("#message").value === ""`)
	sessions, err := s.c.Sessions(s.ctx(), client.SessionsOptions{Agent: "coder"})
	if err != nil || len(sessions.Sessions) != 1 || sessions.Sessions[0].Turns != 2 {
		t.Errorf("%+v, %v; want one conversation of two turns", sessions, err)
	}
}
