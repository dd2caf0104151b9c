package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (a *app) auditVerifyCmd() *cobra.Command {
	var want api.AuditHead
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no row of the audit log was changed or taken out",
		Long: "Check that no row of the audit log was changed or taken out: every row holds the hash of the one before,\n" +
			"and all are computed anew here. With --head, as signalbox audit head printed it earlier, it also shows\n" +
			"whether rows were taken off the end, or the whole log was made anew.",
		Example: "  signalbox audit verify --seq 1042 --head 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		RunE: run(func(ctx context.Context, _ []string) error {
			if want.Hash = strings.ToLower(want.Hash); want.Hash != "" && !hashForm.MatchString(want.Hash) {
				return usage("--head: want the 64 hex digits that signalbox audit head printed")
			}
			if want.Seq < 0 || want.Seq > 0 && want.Hash == "" {
				return usage("--seq: it is the number of the row that --head is the hash of")
			}
			return a.with(ctx, func(c *client.Client) error { return a.auditVerify(ctx, c, want) })
		}),
	}
	cmd.Flags().StringVar(&want.Hash, "head", "", "`hash` that a row must have")
	cmd.Flags().Int64Var(&want.Seq, "seq", 0, "`number` of the row that must have it (default: any)")
	return cmd
}

// verified is the answer of audit verify.
type verified struct {
	OK   bool          `json:"ok"`
	Rows int64         `json:"rows"`
	Head api.AuditHead `json:"head"`
}

// verifier walks the chain and keeps what has still to be met.
type verifier struct {
	last *signalbox.Audit
	rows int64
	want map[string]api.AuditHead // by whose word → a row that must be there
}

func (a *app) auditVerify(ctx context.Context, c *client.Client, want api.AuditHead) error {
	head, err := c.AuditHead(ctx) // first: the log may grow meanwhile, never shrink
	if err != nil {
		return err
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
			return err
		}
		if err := v.row(row); err != nil {
			return broken(err.Error(), v.rows)
		}
	}
	for who, missing := range v.want {
		return broken(fmt.Sprintf("%s has the hash %s, and none has: rows were taken off the end, or the log was made anew", who, missing.Hash), v.rows)
	}
	return a.sound(v)
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
			return fmt.Errorf("row %d has the hash %s, where %s has %s: the log was made anew from that row or from one before it", row.Seq, row.Hash, who, want.Hash)
		}
	}
	return nil
}

func broken(message string, sound int64) error {
	f := &fault{exit: exitError, code: "audit_broken", message: message}
	return f.hinted("the %s before it are sound", plural(int(sound), "row", "rows"))
}

func (a *app) sound(v verifier) error {
	out := verified{OK: true, Rows: v.rows, Head: api.AuditHead{Hash: signalbox.AuditRoot}}
	if v.last != nil {
		out.Head = api.AuditHead{Seq: v.last.Seq, Hash: v.last.Hash, At: &v.last.At}
	}
	return a.print(out, func() error {
		return a.say("%s verified, head %d %s", plural(int(out.Rows), "row", "rows"), out.Head.Seq, out.Head.Hash)
	})
}
