package cli

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) auditCmd() *cobra.Command {
	opts := client.AuditOptions{Newest: true}
	cmd := &cobra.Command{Use: "audit", Short: "Show the audit log: who did what, newest first"}
	f := cmd.Flags()
	f.StringVar(&opts.Since, "since", "", "only since this `time`, RFC 3339 or an age such as 2h")
	f.StringVar(&opts.EventType, "event-type", "", "only this `type`, such as agent_queue, token, login or access")
	f.StringVar(&opts.Action, "action", "", "only this `action`, such as force_release")
	f.StringVar(&opts.UserID, "user", "", "only what this `user` did")
	f.StringVar(&opts.Agent, "agent", "", "only what was done to this `agent`")
	f.StringVar(&opts.Severity, "severity", "", "only this `severity`: info, warning or critical")
	f.Int64Var(&opts.After, "before", 0, "only rows before the one with this `seq`")
	f.IntVar(&opts.Limit, "limit", 50, "`number` of rows, 1 to 1000")
	cmd.AddCommand(a.auditVerifyCmd(), a.auditHeadCmd())
	return query(a, cmd, func(ctx context.Context, c *client.Client, _ []string) (api.AuditLog, error) {
		return c.Audit(ctx, opts)
	}, func(page api.AuditLog) {
		next := ""
		if page.Next != 0 {
			next = strconv.FormatInt(page.Next, 10)
		}
		lines(a, page.Rows, "No rows.", next, a.auditLine)
	})
}

func (a *app) auditLine(row api.AuditRow) string {
	colour := ""
	if row.Result != "success" {
		colour = red
	} else if row.Severity != "info" {
		colour = yellow
	}
	return fmt.Sprintf("%d  %s  %s/%s [%s]", row.Seq, a.clock(row.At), clean(row.EventType), clean(row.Action), a.paint(colour, clean(row.Result))) +
		opt(" by %s", cmp.Or(row.Principal, row.UserID)) + opt(" at %s", row.IPAddress) + opt(" agent %s", row.AgentName) +
		opt(" %s", row.Resource) + opt(" %s", row.Details)
}

func (a *app) auditHeadCmd() *cobra.Command {
	return query(a, &cobra.Command{
		Use:   "head",
		Short: "Print the number and hash of the newest audit row",
		Long: "Print the number and hash of the newest audit row. Keep them where the director's host cannot write: later\n" +
			"signalbox audit verify --seq SEQ --head HASH shows whether any row up to it was changed or removed.",
	}, noArg((*client.Client).AuditHead), func(head api.AuditHead) { a.say("%d %s", head.Seq, clean(head.Hash)) })
}

var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (a *app) auditVerifyCmd() *cobra.Command {
	var want api.AuditHead
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no row of the audit log was changed or removed",
		Long: "Check that no row of the audit log was changed or removed: each row holds the hash of the row before, and\n" +
			"this command recomputes all hashes. With --head, from an earlier signalbox audit head, it also shows whether\n" +
			"rows were removed from the end, or the whole log was rewritten.",
		Example: "  signalbox audit verify --seq 1042 --head 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		PreRunE: func(*cobra.Command, []string) error {
			if want.Hash = strings.ToLower(want.Hash); want.Hash != "" && !hashForm.MatchString(want.Hash) {
				return usage("--head: want the 64 hex digits that signalbox audit head printed")
			}
			if want.Seq < 0 || want.Seq > 0 && want.Hash == "" {
				return usage("--seq: give it with --head: it is the number of the row with that hash")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&want.Hash, "head", "", "`hash` that a row must have")
	cmd.Flags().Int64Var(&want.Seq, "seq", 0, "`number` of the row that must have it (default: any)")
	return query(a, cmd, func(ctx context.Context, c *client.Client, _ []string) (verified, error) {
		return verifyAudit(ctx, c, want)
	}, func(v verified) {
		a.say("%s verified, head %d %s", plural(int(v.Rows), "row", "rows"), v.Head.Seq, v.Head.Hash)
	})
}

// verified is the JSON of audit verify.
type verified struct {
	OK   bool          `json:"ok"`
	Rows int64         `json:"rows"`
	Head api.AuditHead `json:"head"`
}

// verifier checks the hash chain row by row, and that expected rows are in it.
type verifier struct {
	last *signalbox.Audit
	rows int64
	want map[string]api.AuditHead // who claims it → a row that must exist
}

func verifyAudit(ctx context.Context, c *client.Client, want api.AuditHead) (out verified, err error) {
	head, err := c.AuditHead(ctx) // before the rows: the log may grow meanwhile, but never shrink
	if err != nil {
		return out, err
	}
	v := verifier{want: map[string]api.AuditHead{}}
	if head.Seq > 0 {
		v.want["the director says that the newest row"] = head
	}
	if want.Hash != "" {
		v.want["--head says that a row"] = want
	}
	for row, err := range c.AllAudit(ctx, client.AuditOptions{Limit: maxPage}) {
		if err != nil {
			return out, err
		}
		if err := v.row(row); err != nil {
			return out, auditBroken(err.Error(), v.rows)
		}
	}
	for who, missing := range v.want {
		return out, auditBroken(fmt.Sprintf("%s has the hash %s, and no row has it: rows were removed from the end, or the log was rewritten", who, missing.Hash), v.rows)
	}
	out = verified{OK: true, Rows: v.rows, Head: api.AuditHead{Hash: signalbox.AuditRoot}}
	if v.last != nil {
		out.Head = api.AuditHead{Seq: v.last.Seq, Hash: v.last.Hash, At: &v.last.At}
	}
	return out, nil
}

func (v *verifier) row(r api.AuditRow) error {
	row := signalbox.Audit(r) // the wire form has the same fields
	if err := signalbox.CheckAudit(v.last, &row); err != nil {
		return err
	}
	v.last = &row
	v.rows++
	for who, want := range v.want {
		switch {
		case row.Hash == want.Hash && (want.Seq == 0 || want.Seq == row.Seq):
			delete(v.want, who)
		case row.Seq == want.Seq:
			return fmt.Errorf("row %d has the hash %s, where %s has %s: the log was rewritten from that row or an earlier one", row.Seq, row.Hash, who, want.Hash)
		}
	}
	return nil
}

func auditBroken(message string, sound int64) error {
	return failure(exitError, "audit_broken", "%s", message).withHint("the %s before it are intact", plural(int(sound), "row", "rows"))
}
