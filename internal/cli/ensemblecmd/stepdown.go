package ensemblecmd

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// steppedDown is the server's report on what the member led.
type steppedDown struct {
	Etcd    bool `json:"etcd"`
	Streams int  `json:"streams"`
}

func newStepDown(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "step-down NAME",
		Short: "Transfer leadership away from a member",
		Long: `Transfer leadership away from a member: of etcd, and of the NATS streams of the message
log. The command returns when other members lead them. No data is lost. Requests may wait
for a moment, and one that changes a resource at that moment may fail; retry it. Only
system administrators can use the command; the audit log records it.

Use it when the machine or the network of a member is slow, so that the others need not
wait for it, or to test how an ensemble and its clients handle a change of leaders.
Shards keep their owners, and the member may be elected again later. To take a member
out of service, stop it instead: it then hands over its shards too.

The log-leader in 'freshet ensemble status' places the streams, and changes only when that
member stops.`,
		Example: `  # show the leaders
  freshet ensemble status

  # the disk of b is slow
  freshet ensemble step-down b

  # for a script: print what b led
  freshet ensemble step-down b -o json`,
		Args: command.OneArg("the name of the member"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var led steppedDown
			path := membersPath + "/" + url.PathEscape(args[0]) + "/step-down"
			if err := env.Call(cmd.Context(), http.MethodPost, path, &led); err != nil {
				return err
			}
			if format != output.FormatText {
				return output.Value(env.Out, format, led)
			}
			return env.Println(led.summary(args[0]))
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

// summary describes the transfer in one sentence.
func (s steppedDown) summary(member string) string {
	streams := fmt.Sprintf("%d streams of the log", s.Streams)
	if s.Streams == 1 {
		streams = "one stream of the log"
	}
	switch {
	case s.Etcd && s.Streams > 0:
		return "Other members lead etcd and " + streams + ", which " + member + " led."
	case s.Etcd:
		return "Another member leads etcd, which " + member + " led."
	case s.Streams > 0:
		return "Other members lead " + streams + ", which " + member + " led."
	}
	return "Member " + member + " leads nothing; nothing was changed."
}
