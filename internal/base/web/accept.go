package web

import (
	"mime"
	"strconv"
	"strings"
)

// Accepts picks the media type to answer with: of those offered, the one the
// Accept header values like best, the earlier offer winning a tie. No header
// means the first offer. Lists, q-values and wildcards are understood; members
// that do not parse are passed over, since real clients send them (old Java
// HTTP sends a bare "*").
func Accepts(header []string, offers ...string) (string, bool) {
	if len(header) == 0 || strings.TrimSpace(strings.Join(header, "")) == "" {
		return offers[0], true
	}
	best, bestQ, bestExact := "", 0.0, -1
	for _, member := range strings.Split(strings.Join(header, ","), ",") {
		mediaRange, q, ok := parseRange(member)
		if !ok || q == 0 {
			continue
		}
		for _, offer := range offers {
			exact := specificity(mediaRange, offer)
			if exact < 0 {
				continue
			}
			if q > bestQ || (q == bestQ && exact > bestExact) {
				best, bestQ, bestExact = offer, q, exact
			}
			break
		}
	}
	return best, best != ""
}

func parseRange(member string) (string, float64, bool) {
	mediaRange, params, err := mime.ParseMediaType(member)
	if mediaRange == "" && err != nil {
		return "", 0, false
	}
	q := 1.0
	if text, ok := params["q"]; ok {
		if q, err = strconv.ParseFloat(text, 64); err != nil || q < 0 {
			return "", 0, false
		}
	}
	return mediaRange, q, true
}

// specificity is 2 for an exact match, 1 for type/*, 0 for */*, -1 for none.
func specificity(mediaRange, offer string) int {
	switch {
	case strings.EqualFold(mediaRange, offer):
		return 2
	case mediaRange == "*/*" || mediaRange == "*":
		return 0
	}
	if kind, ok := strings.CutSuffix(mediaRange, "/*"); ok {
		if offerKind, _, _ := strings.Cut(offer, "/"); strings.EqualFold(kind, offerKind) {
			return 1
		}
	}
	return -1
}
