package packages

import (
	"context"
	"fmt"

	"freshet/tools/release/plan"
)

// Build writes the packages of all servers for Linux in the release.
func Build(ctx context.Context, p *plan.Plan) error {
	for _, t := range p.Targets {
		if t.CLI || t.OS != "linux" {
			continue
		}
		in := &Input{
			Binary: p.Binary(t), Version: p.Version, Arch: t.Arch, Time: p.Time, Root: p.Root, Dist: p.Dist,
			ManPages: p.ManPages(), Completions: p.Completions(), Notices: p.Notices(t),
		}
		for _, format := range Formats {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := Package(in, format); err != nil {
				return fmt.Errorf("packaging %s: %w", t, err)
			}
		}
	}
	return nil
}
