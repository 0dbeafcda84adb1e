package filter

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/parser"
)

// readsOf returns the texts of the values that an expression reads of a message, at most maxReads: chains
// of members such as payload.lines[0].price.
func readsOf(checked *cel.Ast) (texts []string) {
	add := func(e ast.Expr) {
		text, err := parser.Unparse(e, checked.NativeRep().SourceInfo())
		if err == nil && len(texts) < maxReads && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	findReads(checked.NativeRep().Expr(), nil, add)
	return texts
}

// findReads calls add for every value that an expression reads of a message. bound are the variables of the
// loop around the expression.
func findReads(e ast.Expr, bound []string, add func(ast.Expr)) {
	if isRead(e, bound) {
		add(e)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		findReads(e.AsSelect().Operand(), bound, add)
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			findReads(e.AsCall().Target(), bound, add)
		}
		for _, arg := range e.AsCall().Args() {
			findReads(arg, bound, add)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			findReads(item, bound, add)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			findReads(entry.AsMapEntry().Key(), bound, add)
			findReads(entry.AsMapEntry().Value(), bound, add)
		}
	case ast.ComprehensionKind:
		loop := e.AsComprehension()
		findReads(loop.IterRange(), bound, add)
		inside := append(slices.Clone(bound), loop.IterVar(), loop.IterVar2(), loop.AccuVar())
		for _, part := range []ast.Expr{loop.AccuInit(), loop.LoopCondition(), loop.LoopStep(), loop.Result()} {
			findReads(part, inside, add)
		}
	}
}

// isRead reports whether an expression is a variable of a message, a member of one, or an item whose index
// is written as a literal.
func isRead(e ast.Expr, bound []string) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return !slices.Contains(bound, e.AsIdent()) && slices.Contains(variableNames, e.AsIdent())
	case ast.SelectKind:
		return isRead(e.AsSelect().Operand(), bound)
	case ast.CallKind:
		args := e.AsCall().Args()
		return e.AsCall().FunctionName() == operators.Index && len(args) == 2 &&
			args[1].Kind() == ast.LiteralKind && isRead(args[0], bound)
	}
	return false
}

// shown returns a value as text of at most maxShown characters.
func shown(v ref.Val) string {
	var b strings.Builder
	_ = show(&b, v, 0) // errFull: the text is long enough
	if utf8.RuneCountInString(b.String()) <= maxShown {
		return b.String()
	}
	return string([]rune(b.String())[:maxShown]) + "…"
}

var errFull = errors.New("text is long enough")

// show appends a value as text, and returns errFull when the text is longer than is shown.
func show(b *strings.Builder, v ref.Val, depth int) error {
	if depth > 8 {
		b.WriteString("…")
		return nil
	}
	switch v := v.(type) {
	case *types.Err:
		b.WriteString(cutText(v.Error()))
	case types.String:
		b.WriteString(strconv.Quote(cutText(string(v))))
	case types.Bytes:
		b.WriteString(base64.StdEncoding.EncodeToString(v[:min(len(v), maxShown)]))
	case types.Null:
		b.WriteString("null")
	case types.Timestamp:
		b.WriteString(v.Format(time.RFC3339Nano))
	case *object:
		return showObject(b, v.source, v.budget, depth)
	case traits.Lister:
		return showList(b, v, depth)
	case traits.Mapper:
		return showMap(b, v, depth)
	default:
		b.WriteString(cutText(fmt.Sprint(v.Value())))
	}
	return full(b)
}

func showObject(b *strings.Builder, from source, left *budget, depth int) error {
	b.WriteByte('{')
	separator := ""
	err := from.each(left, func(name string, value ref.Val) error {
		b.WriteString(separator + strconv.Quote(cutText(name)) + ": ")
		separator = ", "
		return show(b, value, depth+1)
	})
	if err != nil && !errors.Is(err, errFull) {
		b.WriteString(separator + cutText(err.Error()))
		err = nil
	}
	b.WriteByte('}')
	return err
}

func showList(b *strings.Builder, list traits.Lister, depth int) error {
	b.WriteByte('[')
	separator := ""
	for items := list.Iterator(); items.HasNext() == types.True; separator = ", " {
		b.WriteString(separator)
		if err := show(b, items.Next(), depth+1); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return full(b)
}

// showMap shows a map that the server made, such as a header: it has few members.
func showMap(b *strings.Builder, m traits.Mapper, depth int) error {
	var names []string
	for keys := m.Iterator(); keys.HasNext() == types.True; {
		names = append(names, fmt.Sprint(keys.Next().Value()))
	}
	slices.Sort(names)
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(cutText(name)) + ": ")
		if err := show(b, m.Get(types.String(name)), depth+1); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func full(b *strings.Builder) error {
	if b.Len() > 4*maxShown { // a character has up to four bytes
		return errFull
	}
	return nil
}

// cutText bounds a text before it is quoted.
func cutText(text string) string {
	if len(text) <= 4*maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:4*maxShown], "")
}
