// Command prose writes the prose of Go and JavaScript files (by default all files of the
// project) to a folder, so that a prose linter can read it: comments, and string literals of
// at least three words outside of tests. Each output file has as many lines as its source,
// so that the line numbers of the linter are those of the source.
package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1) //nolint:forbidigo // a command of its own
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: prose FOLDER [FILE ...]")
	}
	folder, names := args[0], args[1:]
	if len(names) == 0 {
		list, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
			"*.go", "*.js").Output()
		if err != nil {
			return fmt.Errorf("listing the files of the repository: %w", err)
		}
		names = strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
	}
	for _, name := range names {
		if ext := filepath.Ext(name); ext != ".go" && ext != ".js" {
			continue
		}
		source, err := os.ReadFile(name)
		if os.IsNotExist(err) || strings.Contains(name, "/vendor/") {
			continue
		}
		if err != nil {
			return err
		}
		lines := extractScript(string(source))
		if filepath.Ext(name) == ".go" {
			if lines, err = extractGo(name, source); err != nil {
				return err
			}
		}
		if lines == nil {
			continue
		}
		to := filepath.Join(folder, name+".txt")
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// extractGo returns the prose of a Go file by line; nil for generated files.
func extractGo(name string, source []byte) ([]string, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	lines := make([]string, strings.Count(string(source), "\n")+1)
	add := func(at token.Pos, text string) {
		line := fset.Position(at).Line - 1
		for i, part := range strings.Split(text, "\n") {
			if line+i < len(lines) {
				lines[line+i] = strings.TrimSpace(lines[line+i] + " " + strings.TrimSpace(part))
			}
		}
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if text, ok := strings.CutPrefix(comment.Text, "// "); ok {
				add(comment.Pos(), text)
			} else if strings.HasPrefix(comment.Text, "/*") {
				add(comment.Pos(), comment.Text)
			}
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return lines, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ImportSpec); ok {
			return spec == nil
		}
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err == nil && strings.Count(strings.TrimSpace(text), " ") >= 2 {
			if literal.Value[0] == '`' {
				add(literal.Pos(), strings.Trim(literal.Value, "`"))
			} else {
				add(literal.Pos(), strings.ReplaceAll(text, "\n", " "))
			}
		}
		return true
	})
	return lines, nil
}

// extractScript returns a JavaScript file by line: comments, and lines that show text.
func extractScript(source string) []string {
	lines := strings.Split(source, "\n")
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "//"); ok {
			lines[i] = strings.TrimSpace(text)
		} else {
			lines[i] = line
		}
	}
	return lines
}
