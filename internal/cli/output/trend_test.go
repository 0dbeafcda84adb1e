package output

import "testing"

func TestTrend(t *testing.T) {
	t.Parallel()
	points := []*float64{nil, new(0.0), new(3.5), nil, new(7.0)}
	for _, c := range []struct {
		points    []*float64
		sparkline bool
		want      string
	}{
		{points, false, "mean 3.5/s, most 7/s, last 7/s"},
		{points, true, " ▁▅ █  mean 3.5/s, most 7/s, last 7/s"},
		{[]*float64{new(0.0), new(0.0)}, true, "▁▁  mean 0/s, most 0/s, last 0/s"},
		{[]*float64{nil, nil}, true, "not recorded yet"},
		{nil, false, "not recorded yet"},
	} {
		if got := trend(c.points, "/s", c.sparkline); got != c.want {
			t.Errorf("%v, sparkline %v: got %q, want %q", c.points, c.sparkline, got, c.want)
		}
	}
}
