package console

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"freshet/test/pages"
	"freshet/test/testserver"
)

// TestScreenshots makes the pictures of the tutorial and the README from a real server on which it runs the
// tutorial's commands: make screenshots. FRESHET_SCREENSHOTS is the folder of the pictures.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("FRESHET_SCREENSHOTS")
	if folder == "" {
		t.Skip("FRESHET_SCREENSHOTS is not set")
	}
	text, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	shop, err := testserver.Start(t.Context(), executable, work,
		testserver.Options{Kafka: true, DataDir: filepath.Join(work, "freshet-data")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shop.Kill)
	if err := os.Symlink(executable, filepath.Join(work, "freshet")); err != nil {
		t.Fatal(err)
	}
	terminal := func(script string) string {
		run := exec.CommandContext(t.Context(), "bash", "-c", script)
		run.Dir = work
		run.Env = append(os.Environ(), "HOME="+work, "XDG_CONFIG_HOME=", "PATH="+work+":"+os.Getenv("PATH"))
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	draw := func(name, title, text string) {
		text = strings.NewReplacer(
			strings.TrimPrefix(shop.URL, "http://"), "127.0.0.1:8080", strings.TrimPrefix(shop.HTTPS, "https://"),
			"127.0.0.1:8443", strings.TrimPrefix(shop.Ops, "http://"), "127.0.0.1:8081", shop.Kafka, "127.0.0.1:9092",
			shop.KafkaTLS, "127.0.0.1:9093", "  export FRESHET_DATA_DIR="+shop.DataDir+"\n", "", executable, "freshet",
			work+"/", "").Replace(text)
		if err := os.WriteFile(filepath.Join(folder, name), drawTerminal(title, text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, screen, _ := strings.Cut(shop.Log(), "Freshet is ready")
	screen, _, _ = strings.Cut(screen, "\n  kubectl ")
	draw("screen-serve.svg", "freshet serve", "$ freshet serve\n\nFreshet is ready"+strings.TrimRight(screen, "\n"))
	start, rest, _ := strings.Cut(string(text), "\n## 3. ")
	_, rest, found := strings.Cut(rest, "\n## 4. ")
	if !found {
		t.Fatal("tutorial has no parts 3 and 4")
	}
	terminal(pages.Commands(start))
	var consumed strings.Builder
	for _, command := range []string{"kitchen --create-from earliest", "billing --create-from earliest -o wide"} {
		command = "freshet consume orders --subscription " + command
		consumed.WriteString("$ " + command + "\n" + terminal(command))
	}
	draw("screen-consume.svg", "freshet consume", consumed.String())
	terminal(pages.Commands(rest))
	draw("screen-doctor.svg", "freshet doctor", "$ freshet doctor\n"+terminal("freshet doctor | cut -c1-100"))

	b := open(t, 1280, "light")
	b.as(shop.Token)
	b.shootAt(shop.URL+"/console/default/topics/default", "menu-orders", filepath.Join(folder, "console-topics.png"))
	b.shootAt(shop.URL+"/console/default/topics/default/public/default/orders?from=earliest", "flat white",
		filepath.Join(folder, "console-tail.png"))
	b.clean()
}

// shootAt opens a page of any server, waits for a text, and saves a picture with few colours.
func (b *tab) shootAt(url, text, file string) {
	b.t.Helper()
	do(b, chromedp.Navigate(url))
	b.settled()
	b.waitText(text)
	picture := do(b, chromedp.CaptureScreenshot())
	small, err := reduceColours(picture)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, small, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

const (
	lineHeight = 19
	charWidth  = 7.83 // of the fonts below at 13 px, rounded up
	maxColumns = 108
)

// drawTerminal draws text as an SVG terminal window for light and dark pages.
func drawTerminal(title, text string) []byte {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	columns := len(title) + 12
	for i, line := range lines {
		if r := []rune(line); len(r) > maxColumns {
			lines[i] = string(r[:maxColumns-1]) + "…"
		}
		columns = max(columns, len([]rune(lines[i])))
	}
	width, height := int(float64(columns)*charWidth)+40, len(lines)*lineHeight+62
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d"`+
		` role="img" aria-label="%[3]s" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', `+
		`'DejaVu Sans Mono', monospace" font-size="13">
<style>@media (prefers-color-scheme: dark) {.w{fill:#0e1515;stroke:#344848}.b{fill:#182222}text{fill:#e3edeb}.p{fill:#55cfc3}}</style>
<rect class="w" x=".5" y=".5" width="%[4]d" height="%[5]d" rx="8" fill="#fbfcfc" stroke="#c6d1d1"/>
<path class="b" d="M1 32V9a8 8 0 0 1 8-8H%[6]da8 8 0 0 1 8 8V32z" fill="#eff3f3"/>
<circle cx="18" cy="17" r="5" fill="#e0a3a0"/><circle cx="36" cy="17" r="5" fill="#e3cf9c"/><circle cx="54" cy="17" r="5" fill="#a3cfa6"/>
<text x="%[7]d" y="21" text-anchor="middle" fill="#41524f">%[3]s</text>
`, width, height, html.EscapeString(title), width-1, height-1, width-9, width/2)
	for i, line := range lines {
		class := ""
		colour := "#12201f"
		if strings.HasPrefix(line, "$ ") {
			class, colour = ` class="p"`, "#0b6b69"
		}
		_, _ = fmt.Fprintf(&b, `<text%s x="20" y="%d" fill="%s" xml:space="preserve">%s</text>`+"\n", class,
			54+i*lineHeight, colour, html.EscapeString(line))
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// reduceColours encodes a picture as PNG with a palette of its most frequent colours, which makes screenshots a
// fraction of their size.
func reduceColours(picture []byte) ([]byte, error) {
	source, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	bounds := source.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		c, _ := color.RGBAModel.Convert(source.At(x, y)).(color.RGBA) // the model returns this type
		return color.RGBA{c.R &^ 3, c.G &^ 3, c.B &^ 3, 255}
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	palette := color.Palette{}
	for _, c := range colours[:min(len(colours), 64)] {
		palette = append(palette, c)
	}
	reduced := image.NewPaletted(bounds, palette)
	known := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			index, ok := known[c]
			if !ok {
				index = uint8(palette.Index(c)) //nolint:gosec // at most 64 colours
				known[c] = index
			}
			reduced.SetColorIndex(x, y, index)
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&out, reduced)
	return out.Bytes(), err
}
