package generatecmd

import "strings"

// dashboard is a Grafana dashboard, with the fields of Grafana's JSON.
type dashboard struct {
	Inputs        []input        `json:"__inputs"`
	Title         string         `json:"title"`
	UID           string         `json:"uid"`
	Tags          []string       `json:"tags"`
	SchemaVersion int            `json:"schemaVersion"`
	Editable      bool           `json:"editable"`
	Refresh       string         `json:"refresh"`
	Time          timeRange      `json:"time"`
	Templating    templating     `json:"templating"`
	Panels        []gridPanel    `json:"panels"`
	Annotations   map[string]any `json:"annotations"`
}

// input is a question of Grafana's import dialog.
type input struct {
	Name       string `json:"name"`
	Label      string `json:"label"`
	Type       string `json:"type"`
	PluginID   string `json:"pluginId"`
	PluginName string `json:"pluginName"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type templating struct {
	List []variable `json:"list"`
}

// variable is a choice at the top of the dashboard.
type variable struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Datasource datasource     `json:"datasource"`
	Query      string         `json:"query"`
	Refresh    int            `json:"refresh"`
	IncludeAll bool           `json:"includeAll"`
	Multi      bool           `json:"multi"`
	AllValue   string         `json:"allValue,omitempty"`
	Current    map[string]any `json:"current,omitempty"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// gridPanel is a panel, or the heading of a row.
type gridPanel struct {
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	ID          int          `json:"id"`
	GridPos     gridPos      `json:"gridPos"`
	Datasource  *datasource  `json:"datasource,omitempty"`
	FieldConfig *fieldConfig `json:"fieldConfig,omitempty"`
	Targets     []target     `json:"targets,omitempty"`
	Collapsed   *bool        `json:"collapsed,omitempty"`
	Panels      *[]gridPanel `json:"panels,omitempty"`
}

type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []any         `json:"overrides"`
}

type fieldDefaults struct {
	Unit string `json:"unit"`
	Min  int    `json:"min"`
}

// target is a query of a panel.
type target struct {
	RefID  string `json:"refId"`
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
}

const (
	gridColumns = 24
	panelHeight = 8
)

// source is the data source that the person who imports the dashboard chooses.
var source = datasource{Type: "prometheus", UID: "${DS_PROMETHEUS}"}

// The filters of the expressions. In panels.go, @server stands for the chosen server or ensemble, and
// @organization and @cluster also for the chosen organizations and clusters. @rate stands for Grafana's interval of
// rates.
const (
	ofServer       = `job=~"$job",instance=~"$instance"`
	ofEnsemble     = `job=~"$job"`
	ofOrganization = `,organization=~"$organization"`
	ofCluster      = ofOrganization + `,cluster=~"$cluster"`
)

// newDashboard returns the dashboard of one server, or of an ensemble.
func newDashboard(ensemble bool) dashboard {
	d := dashboard{
		Inputs: []input{{
			Name: "DS_PROMETHEUS", Label: "Prometheus", Type: "datasource", PluginID: "prometheus",
			PluginName: "Prometheus",
		}},
		Title: "Freshet", UID: "freshet", Tags: []string{"freshet"}, SchemaVersion: 39, Editable: true,
		Refresh: "15s", Time: timeRange{From: "now-1h", To: "now"}, Annotations: map[string]any{"list": []any{}},
	}
	filter, rows := ofServer, serverRows()
	variables := []variable{
		choice("job", `label_values(freshet_build_info, job)`),
		choice("instance", `label_values(freshet_build_info{job=~"$job"}, instance)`),
	}
	if ensemble {
		d.Title, d.UID = "Freshet ensemble", "freshet-ensemble"
		filter, rows, variables = ofEnsemble, ensembleRows(), variables[:1]
	}
	d.Templating.List = append(variables,
		choices("organization", `label_values(freshet_messaging_topics{`+filter+`}, organization)`),
		choices("cluster", `label_values(freshet_messaging_topics{`+filter+ofOrganization+`}, cluster)`))
	d.Panels = layOut(rows, strings.NewReplacer("@server", filter, "@organization", filter+ofOrganization,
		"@cluster", filter+ofCluster, "@rate", "$__rate_interval"))
	return d
}

// choice returns a variable with one value.
func choice(name, query string) variable {
	return variable{Name: name, Type: "query", Datasource: source, Query: query, Refresh: 2}
}

// choices returns a variable with any number of values.
func choices(name, query string) variable {
	v := choice(name, query)
	v.IncludeAll, v.Multi, v.AllValue = true, true, ".*"
	v.Current = map[string]any{"text": "All", "value": "$__all"}
	return v
}

// layOut places rows below each other, and the panels of each row beside each other.
func layOut(rows []row, filters *strings.Replacer) (list []gridPanel) {
	id, y := 0, 0
	for _, r := range rows {
		id++
		list = append(list, gridPanel{
			Type: "row", Title: r.title, ID: id, GridPos: gridPos{H: 1, W: gridColumns, Y: y},
			Collapsed: new(bool), Panels: &[]gridPanel{},
		})
		y++
		for i, p := range r.panels {
			id++
			left, right := gridColumns*i/len(r.panels), gridColumns*(i+1)/len(r.panels)
			out := gridPanel{
				Type: "timeseries", Title: p.title, ID: id, Datasource: &source,
				GridPos:     gridPos{H: panelHeight, W: right - left, X: left, Y: y},
				FieldConfig: &fieldConfig{Defaults: fieldDefaults{Unit: p.unit}, Overrides: []any{}},
			}
			if p.stat {
				out.Type = "stat"
			}
			for n, q := range p.queries {
				out.Targets = append(out.Targets,
					target{RefID: string(rune('A' + n)), Expr: filters.Replace(q.expr), Legend: q.legend})
			}
			list = append(list, out)
		}
		y += panelHeight
	}
	return list
}
