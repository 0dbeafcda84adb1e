package opscmd

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The dimensions of a plot in SVG units, and the maximum of points.
const (
	plotWidth, plotHeight = 900, 420
	plotLeft, plotBottom  = 70, 50
	plotTop, plotRight    = 50, 20
	plotPoints            = 2000
)

// svg plots the latency of the calls over the time of the run on a logarithmic scale, with
// lines at p50 and p99. It draws at most plotPoints calls, at even intervals.
func (r *result) svg() []byte {
	lowest, highest := math.Inf(1), 0.001
	for _, s := range r.samples {
		ms := milliseconds(s.took)
		lowest, highest = min(lowest, ms), max(highest, ms)
	}
	lowest = math.Pow(10, math.Floor(math.Log10(min(lowest, highest))))
	highest = math.Pow(10, math.Ceil(math.Log10(highest*1.0001)))
	x := func(at time.Duration) float64 {
		return plotLeft + (plotWidth-plotLeft-plotRight)*min(1, at.Seconds()/max(r.Seconds, 1e-9))
	}
	y := func(ms float64) float64 {
		part := (math.Log10(max(ms, lowest)) - math.Log10(lowest)) / max(math.Log10(highest)-math.Log10(lowest), 1e-9)
		return plotHeight - plotBottom - (plotHeight-plotTop-plotBottom)*part
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"`+
		` font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="15">`+
		"freshet bench %s: %d in %.1f s, %.0f/s, %d concurrent calls</text>\n",
		plotLeft, r.Name, r.Count, r.Seconds, r.PerSecond, r.Workers)
	for ms := lowest; ms <= highest*1.001; ms *= 10 {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>`+
			`<text x="%d" y="%.1f" text-anchor="end">%g ms</text>`+"\n",
			plotLeft, plotWidth-plotRight, y(ms), y(ms), plotLeft-8, y(ms)+4, ms)
	}
	for i := range 6 {
		at := time.Duration(float64(i) / 5 * r.Seconds * float64(time.Second))
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.1f s</text>`+"\n", x(at),
			plotHeight-plotBottom+20, at.Seconds())
	}
	step := max(1, (len(r.samples)+plotPoints-1)/plotPoints)
	for i := 0; i < len(r.samples); i += step {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="1.6" fill="#2563eb" fill-opacity="0.5"/>`+"\n",
			x(r.samples[i].at), y(milliseconds(r.samples[i].took)))
	}
	for _, q := range []struct {
		name  string
		ms    float64
		color string
	}{{"p50", r.P50, "#16a34a"}, {"p99", r.P99, "#dc2626"}} {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s"/>`+
			`<text x="%d" y="%.1f" text-anchor="end" fill="%s">%s %.1f ms</text>`+"\n",
			plotLeft, plotWidth-plotRight, y(q.ms), y(q.ms), q.color, plotWidth-plotRight-4, y(q.ms)-4,
			q.color, q.name, q.ms)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
