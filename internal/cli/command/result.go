package command

import (
	"fmt"

	"github.com/spf13/pflag"

	"freshet/internal/cli/output"
)

// Result is what a command has done to one object, in the form of -o json.
type Result struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Action string `json:"action"` // created, deleted, exists, …
	// Count is the number of messages or versions that an action was done to, if it has one.
	Count *int `json:"count,omitempty"`
}

// AddResultFlag adds the flag -o to a command that reports with Done.
func (e *Env) AddResultFlag(f *pflag.FlagSet) {
	output.AddFlag(f, &e.resultFormat, output.FormatText, output.FormatJSON, output.FormatYAML, output.FormatName)
}

// Done reports what the command has done: as a sentence, or in the format of -o.
func (e *Env) Done(result Result, sentence string, args ...any) error {
	var err error
	switch {
	case e.resultFormat.IsData():
		err = output.Value(e.Out, e.resultFormat, result)
	case e.resultFormat == output.FormatName:
		_, err = fmt.Fprintln(e.Out, output.Clean(result.Name))
	default:
		_, err = fmt.Fprintf(e.Out, sentence+"\n", args...)
	}
	return err
}

// ResultIsText reports whether Done prints sentences.
func (e *Env) ResultIsText() bool { return e.resultFormat == "" || e.resultFormat == output.FormatText }
