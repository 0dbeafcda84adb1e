package clustercmd

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// steppedDown is what the server tells.
type steppedDown struct {
	Etcd    bool `json:"etcd"`
	Streams int  `json:"streams"`
}

func newStepDown(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "step-down NAME",
		Short: "Have a member give up what it leads",
		Long: `Have a member give up what it leads: etcd, and streams of the log of messages. It
returns when others lead them. Nothing is lost. Calls may wait for a moment, and one
that changes a resource just then may fail and has to be made again. For system
administrators; it is written to the audit log.

Use it when the machine or the network of a member is slow, so that the others need not
wait for it, or to see how a group and its clients take a change of leaders. Shards stay
where they are, and the member may be elected again later. A member that is to do
nothing for a while is better stopped: then it hands its shards over as well.

The log-leader of 'freshet cluster status' decides where streams are, and changes only
when that member stops.`,
		Example: `  # who leads
  freshet cluster status

  # the disk of b is slow
  freshet cluster step-down b

  # for a script: what it led
  freshet cluster step-down b -o json`,
		Args: command.One("the name of the member"),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := env.Client()
			if err != nil {
				return err
			}
			defer conn.Close()
			answer, err := conn.Do(cmd.Context(),
				&client.Request{Method: http.MethodPost, Path: membersPath + "/" + url.PathEscape(args[0]) +
					"/step-down"})
			if err != nil {
				return err
			}
			var led steppedDown
			if err := answer.JSON(&led); err != nil {
				return err
			}
			if format != output.FormatText {
				return output.Value(env.Out, format, led)
			}
			_, err = fmt.Fprintln(env.Out, led.tell(args[0]))
			return err
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

// tell says what was given up.
func (s steppedDown) tell(member string) string {
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
