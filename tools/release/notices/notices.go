// Package notices writes the licences of everything that a program links into one file per target. Their texts
// must accompany every copy of the program.
package notices

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"freshet/tools/release/parts"
	"freshet/tools/release/plan"
)

// Build writes the file of each target.
func Build(ctx context.Context, p *plan.Plan) error {
	for _, t := range p.Targets {
		modules, err := parts.Of(ctx, p, t)
		if err != nil {
			return err
		}
		file := p.Notices(t)
		fmt.Println("writing the licences of", len(modules), "modules for", t)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(format(t, modules)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// format lists the modules, and then each text once, below the names of all modules that have it.
func format(t plan.Target, modules []parts.Module) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The program freshet for %s/%s contains the Go standard library and these modules.\n"+
		"Their licences and notices follow; each text has the modules that it belongs to above it.\n\n", t.OS, t.Arch)
	var order []string
	owners := map[string][]string{}
	for _, m := range modules {
		fmt.Fprintf(&b, "%s %s (%s)\n", m.Path, m.Version, strings.Join(m.Licences(), ", "))
		for _, text := range m.Texts {
			if _, seen := owners[text.Content]; !seen {
				order = append(order, text.Content)
			}
			owners[text.Content] = append(owners[text.Content], m.Path+" "+m.Version+": "+text.Name)
		}
	}
	for _, content := range order {
		b.WriteString("\n" + strings.Repeat("=", 100) + "\n" + strings.Join(owners[content], "\n") + "\n" +
			strings.Repeat("-", 100) + "\n\n" + content)
	}
	return b.String()
}
