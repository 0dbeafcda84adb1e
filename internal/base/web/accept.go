package web

import (
	"mime"
	"strconv"
	"strings"
)

// Accepts selects the media type of a response: the offer that the Accept header
// prefers, and on a tie the earlier offer. Without a header it is the first offer. It
// supports lists, q-values and wildcards. It skips list elements that do not parse,
// because real clients send them (old Java HTTP sends a bare "*").
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

// specificity returns 2 for an exact match, 1 for type/*, 0 for */*, -1 for no match.
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
