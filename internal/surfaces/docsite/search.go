package docsite

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// index is what the script searches: the parts of all pages, and for each term the parts that
// contain it. A part is a heading with the text up to the next heading.
type index struct {
	Pages [][3]string      `json:"pages"` // location, title, section
	Parts []any            `json:"parts"` // page, anchor, heading, excerpt of each part, one after the other
	Terms map[string][]int `json:"terms"` // 4·d + weight, where d is the distance from the part before
	Stop  []string         `json:"stop"`  // frequent terms, which are not in the index and ignored in queries
}

// The weights of a term in a part; the highest one counts.
const (
	weightBody = iota
	weightRepeated
	weightHeading
	weightTitle
)

// excerptLength is the length of the text that a search result shows.
const excerptLength = 110

// term matches a term of a text in lower case. The script uses the same expression.
var term = regexp.MustCompile(`[\p{L}\p{N}]{2,}`)

// stopWords are the most frequent terms of English prose.
var stopWords = []string{
	"an", "and", "are", "as", "at", "be", "but", "by", "can", "for", "from", "has", "have", "if", "in", "is", "it",
	"its", "not", "of", "on", "or", "so", "that", "the", "their", "then", "there", "they", "this", "to", "was",
	"which", "with",
}

// searchIndex returns the search index in JSON.
func (s *Site) searchIndex() ([]byte, error) {
	built := index{Terms: map[string][]int{}, Stop: stopWords}
	last := map[string]int{} // the last part of each term
	parts := 0
	for _, sec := range s.sections {
		for _, p := range sec.pages {
			doc, err := s.parse(p)
			if err != nil {
				return nil, err
			}
			built.Pages = append(built.Pages, [3]string{shorten(p.location), p.title, sec.title})
			for i, part := range doc.parts() {
				built.Parts = append(built.Parts, len(built.Pages)-1, part.anchor, part.heading,
					excerpt(part.text, excerptLength))
				title := ""
				if i == 0 {
					title = p.title + " " + strings.NewReplacer("/", " ", "-", " ").Replace(p.location)
				}
				weights := weigh(title, part.heading, part.text)
				for _, t := range slices.Sorted(maps.Keys(weights)) {
					built.Terms[t] = append(built.Terms[t], 4*(parts-last[t])+weights[t])
					last[t] = parts
				}
				parts++
			}
		}
	}
	return json.Marshal(built)
}

// weigh returns the terms of a part with their weights.
func weigh(title, heading, body string) map[string]int {
	weights := map[string]int{}
	for _, t := range terms(body) {
		if _, seen := weights[t]; seen {
			weights[t] = weightRepeated
		} else {
			weights[t] = weightBody
		}
	}
	for _, t := range terms(heading) {
		weights[t] = weightHeading
	}
	for _, t := range terms(title) {
		weights[t] = weightTitle
	}
	return weights
}

// terms returns the terms of a text.
func terms(text string) []string {
	return slices.DeleteFunc(term.FindAllString(strings.ToLower(text), -1), func(t string) bool {
		_, stop := slices.BinarySearch(stopWords, t)
		return stop || len(t) > 40 // longer ones are keys and hashes in examples
	})
}

// part is a heading with the text up to the next heading.
type part struct{ anchor, heading, text string }

// parts divides a page at its headings. The first part has no anchor.
func (d *document) parts() []part {
	list := []part{{}}
	next := 0
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindHeading && next < len(d.headings) {
			h := d.headings[next]
			next++
			if h.level > 1 {
				list = append(list, part{anchor: h.Anchor, heading: h.Title})
			}
			continue
		}
		p := &list[len(list)-1]
		p.text = strings.TrimSpace(p.text + " " + plain(n, d.text))
	}
	return list
}
