package contract

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// Parse parses a conversation; folder holds the files that it may refer to.
func Parse(text []byte, folder fs.FS) (*Conversation, error) {
	archive := txtar.Parse(text)
	c := &Conversation{About: strings.TrimSpace(string(archive.Comment))}
	if c.About == "" {
		return nil, errors.New("conversation has no comment; describe what it is about")
	}
	names := map[string]bool{}
	for _, f := range archive.Files {
		if names[f.Name] {
			return nil, fmt.Errorf("two steps are named %q", f.Name)
		}
		names[f.Name] = true
		if file, ok := caseFile(f); ok {
			data := f.Data
			if file != "" {
				var err error
				if data, err = fs.ReadFile(folder, file); err != nil {
					return nil, fmt.Errorf("cases: %w", err)
				}
			}
			cases, err := parseCases(data)
			if err != nil {
				return nil, err
			}
			c.Cases = append(c.Cases, cases...)
			continue
		}
		if file, ok := strings.CutPrefix(f.Name, "include "); ok {
			if err := c.include(file, folder); err != nil {
				return nil, err
			}
			continue
		}
		step, err := parseStep(f.Name, string(f.Data))
		if err != nil {
			return nil, fmt.Errorf("step %q: %w", f.Name, err)
		}
		c.Steps = append(c.Steps, step)
	}
	return c, c.checkSteps()
}

// include adds the steps of another file.
func (c *Conversation) include(file string, folder fs.FS) error {
	text, err := fs.ReadFile(folder, file)
	if err != nil {
		return fmt.Errorf("include: %w", err)
	}
	for _, f := range txtar.Parse(text).Files {
		step, err := parseStep(file+": "+f.Name, string(f.Data))
		if err != nil {
			return fmt.Errorf("%s: step %q: %w", file, f.Name, err)
		}
		c.Steps = append(c.Steps, step)
	}
	return nil
}

func (c *Conversation) checkSteps() error {
	if len(c.Steps) == 0 {
		return errors.New("conversation has no steps")
	}
	for i, step := range c.Steps {
		if step.RepeatFrom != "" && c.find(step.RepeatFrom) >= i {
			return fmt.Errorf("step %q repeats from %q, which is not before it", step.Name, step.RepeatFrom)
		}
		if step.RepeatFrom != "" && c.find(step.RepeatFrom) < 0 {
			return fmt.Errorf("step %q repeats from %q, which does not exist", step.Name, step.RepeatFrom)
		}
	}
	return nil
}

func (c *Conversation) find(name string) int {
	return slices.IndexFunc(c.Steps, func(s Step) bool { return s.Name == name })
}
