package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) auditCmd() *cobra.Command {
	opts := client.AuditOptions{Newest: true}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show the audit log: who did what, newest first",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (api.AuditLog, error) {
			return c.Audit(ctx, opts)
		}, a.auditLines),
	}
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
	return cmd
}

func (a *app) auditLines(page api.AuditLog) error {
	for _, row := range page.Rows {
		if err := a.say("%s", a.auditLine(row)); err != nil {
			return err
		}
	}
	switch {
	case len(page.Rows) == 0:
		a.note("No rows.")
	case page.Next != 0:
		a.note("There are more: --before %d", page.Next)
	}
	return nil
}

func (a *app) auditLine(row api.AuditRow) string {
	line := fmt.Sprintf("%d  %s  %s/%s", row.Seq, a.clock(row.At), clean(row.EventType), clean(row.Action))
	colour := ""
	if row.Result != "success" {
		colour = red
	} else if row.Severity != "info" {
		colour = yellow
	}
	line += " [" + a.paint(colour, clean(row.Result)) + "]"
	for _, part := range []struct{ name, value string }{
		{" by ", cmp.Or(row.Principal, row.UserID)}, {" at ", row.IPAddress}, {" agent ", row.AgentName}, {" ", row.Resource}, {" ", row.Details},
	} {
		if part.value != "" {
			line += part.name + clean(part.value)
		}
	}
	return line
}

func (a *app) auditHeadCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "head",
		Short: "Print number and hash of the newest audit row",
		Long: "Print number and hash of the newest audit row. Keep it where the director's host cannot write: with\n" +
			"signalbox audit verify --seq SEQ --head HASH it shows later that no row up to it was changed or taken off.",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (api.AuditHead, error) {
			return c.AuditHead(ctx)
		}, func(head api.AuditHead) error { return a.say("%d %s", head.Seq, clean(head.Hash)) }),
	}
}
