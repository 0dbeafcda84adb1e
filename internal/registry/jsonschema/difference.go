package jsonschema

import "strings"

// Difference is one difference between an old and a new schema.
type Difference struct {
	Type       string // Confluent's name, for example MAX_LENGTH_ADDED
	Path       string // for example #/properties/age
	Compatible bool   // documents of the old schema stay valid
}

// String describes the difference for the backward direction, in which the new schema reads
// documents of the old one.
func (d Difference) String() string { return d.Describe("new", "old") }

// Describe formats the difference as Confluent Schema Registry does. In the forward
// direction, in which the roles of the schemas are exchanged, call Describe("old", "new").
func (d Difference) Describe(newName, oldName string) string {
	text := strings.NewReplacer("{path}", d.Path, "{new}", newName, "{old}",
		oldName).Replace(changes[change(d.Type)].text)
	return `{errorType:"` + d.Type + `", description:"` + text + `"}`
}

// change is the name of a type of difference.
type change string

// The descriptions. Those of incompatible differences have the wording of Confluent Schema
// Registry; those that only compatible differences use are Freshet's own.
const (
	keywordAdded   = "The keyword at path '{path}' in the {new} schema is not present in the {old} schema"
	keywordRemoved = "The keyword at path '{path}' in the {old} schema is not present in the {new} schema"
	valueMore      = "The value at path '{path}' in the {new} schema is more than its value in the {old} schema"
	valueLess      = "The value at path '{path}' in the {new} schema is less than its value in the {old} schema"
	valueDiffers   = "The value at path '{path}' is different between the {new} and {old} schema"
	typeDiffers    = "A type at path '{path}' is different between the {new} schema and the {old} schema"
	fewerElements  = "An array or combined type at path '{path}' has fewer elements in the {new} schema than the " +
		"{old} schema"
	moreElements = "An array or combined type at path '{path}' has more elements in the {new} schema than the " +
		"{old} schema"
	addedToOpen = "The {new} schema has an open content model and has a property or item at path '{path}' which " +
		"is missing in the {old} schema"
	requiredUnopen = "The {new} schema has an unopen content model and has a required property at path '{path}' " +
		"which is missing in the {old} schema"
	optionalUnopen = "The {new} schema has an unopen content model and has an optional property at path '{path}' " +
		"which is missing in the {old} schema"
	addedToClosed = "The {old} schema has a closed content model and is missing an item present at path '{path}' " +
		"in the {new} schema"
	removedFromClosed = "The {new} has a closed content model and is missing a property or item present at path " +
		"'{path}' in the {old} schema"
	forbiddenRemoved = "The {new} schema has a closed content model and is missing a property or item that the {old} " +
		"schema forbids at path '{path}'"
	removedFromOpen = "The {new} schema has an open content model and is missing a property or item present at path " +
		"'{path}' in the {old} schema"
	removedUncovered = "A property or item is missing in the {new} schema but present at path '{path}' in the {old} " +
		"schema and is not covered by its partially open content model"
	removedCovered = "A property or item is missing in the {new} schema but present at path '{path}' in the {old} " +
		"schema and is covered by its partially open content model"
	addedUncovered = "The {new} schema has a property or item at path '{path}' which is missing in the {old} schema " +
		"and is not covered by its partially open content model"
	addedCovered = "The {new} schema has a property or item at path '{path}' which is missing in the {old} schema " +
		"and is covered by its partially open content model"
)

type changeInfo struct {
	compatible bool
	text       string
}

// changes is the rule table of docs/spec/registry.md#json-compatibility: every type of
// difference, whether it is compatible, and its description. newBound and newOpenness add
// further entries.
var changes = map[change]changeInfo{
	"ID_CHANGED":                         {true, valueDiffers},
	"TITLE_CHANGED":                      {true, valueDiffers},
	"DESCRIPTION_CHANGED":                {true, valueDiffers},
	"DEFAULT_CHANGED":                    {true, valueDiffers},
	"SCHEMA_ADDED":                       {false, keywordAdded},
	"SCHEMA_REMOVED":                     {true, keywordRemoved},
	"TYPE_CHANGED":                       {false, typeDiffers},
	"TYPE_EXTENDED":                      {true, typeDiffers},
	"TYPE_NARROWED":                      {false, typeDiffers},
	"PATTERN_ADDED":                      {false, keywordAdded},
	"PATTERN_REMOVED":                    {true, keywordRemoved},
	"PATTERN_CHANGED":                    {false, valueDiffers},
	"MULTIPLE_OF_ADDED":                  {false, keywordAdded},
	"MULTIPLE_OF_REMOVED":                {true, keywordRemoved},
	"MULTIPLE_OF_EXPANDED":               {false, valueMore},
	"MULTIPLE_OF_REDUCED":                {true, valueLess},
	"MULTIPLE_OF_CHANGED":                {false, valueDiffers},
	"ENUM_ARRAY_EXTENDED":                {true, moreElements},
	"ENUM_ARRAY_NARROWED":                {false, fewerElements},
	"ENUM_ARRAY_CHANGED":                 {false, typeDiffers},
	"NOT_TYPE_EXTENDED":                  {false, moreElements},
	"NOT_TYPE_NARROWED":                  {true, fewerElements},
	"COMBINED_TYPE_EXTENDED":             {true, typeDiffers},
	"COMBINED_TYPE_CHANGED":              {false, typeDiffers},
	"COMBINED_TYPE_SUBSCHEMAS_CHANGED":   {false, typeDiffers},
	"PRODUCT_TYPE_EXTENDED":              {false, moreElements},
	"PRODUCT_TYPE_NARROWED":              {true, fewerElements},
	"SUM_TYPE_EXTENDED":                  {true, moreElements},
	"SUM_TYPE_NARROWED":                  {false, fewerElements},
	"REQUIRED_ATTRIBUTE_ADDED":           {false, keywordAdded},
	"REQUIRED_ATTRIBUTE_REMOVED":         {true, keywordRemoved},
	"DEPENDENCY_ARRAY_ADDED":             {false, keywordAdded},
	"DEPENDENCY_ARRAY_REMOVED":           {true, keywordRemoved},
	"DEPENDENCY_ARRAY_EXTENDED":          {false, moreElements},
	"DEPENDENCY_ARRAY_NARROWED":          {true, fewerElements},
	"DEPENDENCY_ARRAY_CHANGED":           {false, valueDiffers},
	"DEPENDENCY_SCHEMA_ADDED":            {false, keywordAdded},
	"DEPENDENCY_SCHEMA_REMOVED":          {true, keywordRemoved},
	"UNIQUE_ITEMS_ADDED":                 {false, keywordAdded},
	"UNIQUE_ITEMS_REMOVED":               {true, keywordRemoved},
	"ITEM_ADDED_TO_OPEN_CONTENT_MODEL":   {false, addedToOpen},
	"ITEM_ADDED_TO_CLOSED_CONTENT_MODEL": {true, addedToClosed},

	"REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED":                        {true, keywordAdded},
	"PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL":                     {true, removedFromOpen},
	"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL":                   {false, removedFromClosed},
	"PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL":        {true, forbiddenRemoved},
	"PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL":  {true, removedCovered},
	"PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": {false, removedUncovered},
	"PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL":       {true, addedToOpen},
	"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL":   {false, addedToOpen},
	"REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL":                {false, addedToOpen},
	"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL":                {false, addedToOpen},
	"PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL":    {true, addedCovered},
	"PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL":   {false, addedUncovered},
	"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL": {true, requiredUnopen},
	"REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL":              {false, requiredUnopen},
	"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL":              {true, optionalUnopen},

	"ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL":                     {true, removedFromOpen},
	"ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL":                   {false, removedFromClosed},
	"ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL":        {true, forbiddenRemoved},
	"ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL":  {true, removedCovered},
	"ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": {false, removedUncovered},
	"ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL":       {true, addedToOpen},
	"ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL":    {true, addedCovered},
	"ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL":   {false, addedUncovered},
}

// bound has the four changes of a numeric limit.
type bound struct{ added, removed, increased, decreased change }

// openness has the four changes of a keyword for properties or items that are not named.
type openness struct{ added, removed, extended, narrowed change }

// ceiling returns the changes of an upper limit: increasing it is compatible.
func ceiling(name string) bound {
	return newBound(name, changeInfo{true, valueMore}, changeInfo{false, valueLess})
}

// floor returns the changes of a lower limit: decreasing it is compatible.
func floor(name string) bound {
	return newBound(name, changeInfo{false, valueMore}, changeInfo{true, valueLess})
}

func newBound(name string, increased, decreased changeInfo) bound {
	b := bound{
		change(name + "_ADDED"), change(name + "_REMOVED"), change(name + "_INCREASED"),
		change(name + "_DECREASED"),
	}
	changes[b.added] = changeInfo{false, keywordAdded}
	changes[b.removed] = changeInfo{true, keywordRemoved}
	changes[b.increased] = increased
	changes[b.decreased] = decreased
	return b
}

func newOpenness(name string) openness {
	o := openness{
		change(name + "_ADDED"), change(name + "_REMOVED"), change(name + "_EXTENDED"),
		change(name + "_NARROWED"),
	}
	// The keyword false forbids, so allowing means that the keyword was removed.
	changes[o.added] = changeInfo{true, keywordRemoved}
	changes[o.removed] = changeInfo{false, keywordAdded}
	changes[o.extended] = changeInfo{true, moreElements}
	changes[o.narrowed] = changeInfo{false, fewerElements}
	return o
}

var (
	maxLength        = ceiling("MAX_LENGTH")
	minLength        = floor("MIN_LENGTH")
	maximum          = ceiling("MAXIMUM")
	minimum          = floor("MINIMUM")
	exclusiveMaximum = ceiling("EXCLUSIVE_MAXIMUM")
	exclusiveMinimum = floor("EXCLUSIVE_MINIMUM")
	maxProperties    = ceiling("MAX_PROPERTIES")
	minProperties    = floor("MIN_PROPERTIES")
	maxItems         = ceiling("MAX_ITEMS")
	minItems         = floor("MIN_ITEMS")
	maxContains      = ceiling("MAX_CONTAINS")
	minContains      = floor("MIN_CONTAINS")

	additionalProperties  = newOpenness("ADDITIONAL_PROPERTIES")
	unevaluatedProperties = newOpenness("UNEVALUATED_PROPERTIES")
	additionalItems       = newOpenness("ADDITIONAL_ITEMS")
	unevaluatedItems      = newOpenness("UNEVALUATED_ITEMS")
)
