package jsonschema

type ruleCase struct {
	old, next string
	// want lists the differences as "TYPE path", joined by "; ". Which of them
	// are incompatible is checked against the table in TestVerdictOfEachChange.
	want string
}

// ruleCases has at least two cases for every change; a test checks that.
var ruleCases = []ruleCase{
	// Annotations.
	{`{"$id":"a"}`, `{"$id":"b"}`, "ID_CHANGED #/"},
	{`{"type":"string","$id":"a"}`, `{"type":"string"}`, "ID_CHANGED #/"},
	{`{"title":"a"}`, `{"title":"b"}`, "TITLE_CHANGED #/"},
	{
		`{"type":"array","items":{"type":"null","title":"a"}}`, `{"type":"array","items":{"type":"null"}}`,
		"TITLE_CHANGED #/items",
	},
	{`{"description":"a"}`, `{"description":"b"}`, "DESCRIPTION_CHANGED #/"},
	{
		obj(`"a":{"type":"boolean"}`, ""), obj(`"a":{"type":"boolean","description":"b"}`, ""),
		"DESCRIPTION_CHANGED #/properties/a",
	},
	{`{"type":"string","default":"a"}`, `{"type":"string","default":"b"}`, "DEFAULT_CHANGED #/"},
	{`{"type":"number"}`, `{"type":"number","default":1}`, "DEFAULT_CHANGED #/"},

	// Types.
	{`{"type":"string"}`, `{"type":"number"}`, "TYPE_CHANGED #/"},
	{`{}`, `{"type":"number"}`, "TYPE_CHANGED #/"},
	{`true`, `false`, "TYPE_CHANGED #/"},
	{`false`, `true`, ""},
	{`false`, `{"type":"string"}`, ""},
	{`{"type":"string"}`, `{}`, ""},
	{`{"type":"string"}`, `true`, ""},
	{`{"type":"string"}`, `false`, "TYPE_CHANGED #/"},
	{`{"type":"integer"}`, `{"type":"number"}`, "TYPE_EXTENDED #/"},
	{obj(`"a":{"type":"integer"}`, ""), obj(`"a":{"type":"number"}`, ""), "TYPE_EXTENDED #/properties/a"},
	{`{"type":"number"}`, `{"type":"integer"}`, "TYPE_NARROWED #/"},
	{
		`{"type":"array","items":{"type":"number"}}`, `{"type":"array","items":{"type":"integer"}}`,
		"TYPE_NARROWED #/items",
	},
	{`{"type":"boolean"}`, `{"type":"null"}`, "TYPE_CHANGED #/"},
	{`{"type":"string","connect.type":"bytes"}`, `{"type":"number","connect.type":"bytes"}`, ""},
	{`{"type":"string","connect.type":"bytes"}`, `{"type":"number"}`, "TYPE_CHANGED #/"},
	{`{"type":"string","connect.type":"int8"}`, `{"type":"number","connect.type":"int8"}`, "TYPE_CHANGED #/"},

	// Strings.
	{`{"type":"string"}`, `{"type":"string","maxLength":5}`, "MAX_LENGTH_ADDED #/maxLength"},
	{
		obj(`"a":{"type":"string"}`, ""), obj(`"a":{"type":"string","maxLength":5}`, ""),
		"MAX_LENGTH_ADDED #/properties/a/maxLength",
	},
	{`{"type":"string","maxLength":5}`, `{"type":"string"}`, "MAX_LENGTH_REMOVED #/maxLength"},
	{
		`{"type":["string","null"],"maxLength":5}`, `{"type":["string","null"]}`,
		"MAX_LENGTH_REMOVED #/anyOf/0/maxLength",
	},
	{`{"type":"string","maxLength":5}`, `{"type":"string","maxLength":6}`, "MAX_LENGTH_INCREASED #/maxLength"},
	{`{"maxLength":9}`, `{"maxLength":10}`, "MAX_LENGTH_INCREASED #/maxLength"},
	{`{"type":"string","maxLength":6}`, `{"type":"string","maxLength":5}`, "MAX_LENGTH_DECREASED #/maxLength"},
	{`{"maxLength":10}`, `{"maxLength":9}`, "MAX_LENGTH_DECREASED #/maxLength"},
	{`{"type":"string"}`, `{"type":"string","minLength":5}`, "MIN_LENGTH_ADDED #/minLength"},
	{`{"pattern":"a"}`, `{"pattern":"a","minLength":1}`, "MIN_LENGTH_ADDED #/minLength"},
	{`{"type":"string","minLength":5}`, `{"type":"string"}`, "MIN_LENGTH_REMOVED #/minLength"},
	{`{"pattern":"a","minLength":1}`, `{"pattern":"a"}`, "MIN_LENGTH_REMOVED #/minLength"},
	{`{"type":"string","minLength":5}`, `{"type":"string","minLength":6}`, "MIN_LENGTH_INCREASED #/minLength"},
	{`{"minLength":0}`, `{"minLength":1}`, "MIN_LENGTH_INCREASED #/minLength"},
	{`{"type":"string","minLength":6}`, `{"type":"string","minLength":5}`, "MIN_LENGTH_DECREASED #/minLength"},
	{`{"minLength":1}`, `{"minLength":0}`, "MIN_LENGTH_DECREASED #/minLength"},
	{`{"type":"string","minLength":1}`, `{"type":"string","minLength":1.0}`, ""},
	{`{"type":"string"}`, `{"type":"string","pattern":"a"}`, "PATTERN_ADDED #/pattern"},
	{`{"minLength":1}`, `{"minLength":1,"pattern":"a"}`, "PATTERN_ADDED #/pattern"},
	{`{"type":"string","pattern":"a"}`, `{"type":"string"}`, "PATTERN_REMOVED #/pattern"},
	{`{"minLength":1,"pattern":"a"}`, `{"minLength":1}`, "PATTERN_REMOVED #/pattern"},
	{`{"type":"string","pattern":"a"}`, `{"type":"string","pattern":"b"}`, "PATTERN_CHANGED #/pattern"},
	{`{"pattern":"^a"}`, `{"pattern":"^a$"}`, "PATTERN_CHANGED #/pattern"},
	{`{"type":"string","format":"date"}`, `{"type":"string","format":"email"}`, ""},
	{`{"type":"string"}`, `{"type":"string","format":"email"}`, ""},

	// Numbers.
	{`{"type":"number"}`, `{"type":"number","maximum":5}`, "MAXIMUM_ADDED #/maximum"},
	{`{"type":"integer"}`, `{"type":"integer","maximum":5}`, "MAXIMUM_ADDED #/maximum"},
	{`{"type":"number","maximum":5}`, `{"type":"number"}`, "MAXIMUM_REMOVED #/maximum"},
	{`{"type":"integer","maximum":5}`, `{"type":"number"}`, "MAXIMUM_REMOVED #/maximum; TYPE_EXTENDED #/"},
	{`{"type":"number","maximum":5}`, `{"type":"number","maximum":5.5}`, "MAXIMUM_INCREASED #/maximum"},
	{`{"maximum":-2}`, `{"maximum":-1}`, "MAXIMUM_INCREASED #/maximum"},
	{`{"type":"number","maximum":1e2}`, `{"type":"number","maximum":99}`, "MAXIMUM_DECREASED #/maximum"},
	{`{"maximum":-1}`, `{"maximum":-2}`, "MAXIMUM_DECREASED #/maximum"},
	{`{"type":"number","maximum":1e2}`, `{"type":"number","maximum":100.00}`, ""},
	{`{"type":"number"}`, `{"type":"number","minimum":5}`, "MINIMUM_ADDED #/minimum"},
	{`{"maximum":1}`, `{"maximum":1,"minimum":0}`, "MINIMUM_ADDED #/minimum"},
	{`{"type":"number","minimum":5}`, `{"type":"number"}`, "MINIMUM_REMOVED #/minimum"},
	{`{"maximum":1,"minimum":0}`, `{"maximum":1}`, "MINIMUM_REMOVED #/minimum"},
	{`{"type":"number","minimum":5}`, `{"type":"number","minimum":6}`, "MINIMUM_INCREASED #/minimum"},
	{`{"minimum":0}`, `{"minimum":0.001}`, "MINIMUM_INCREASED #/minimum"},
	{`{"type":"number","minimum":5}`, `{"type":"number","minimum":-6}`, "MINIMUM_DECREASED #/minimum"},
	{`{"minimum":0}`, `{"minimum":-1e-9}`, "MINIMUM_DECREASED #/minimum"},
	{`{"type":"number"}`, `{"type":"number","exclusiveMaximum":5}`, "EXCLUSIVE_MAXIMUM_ADDED #/exclusiveMaximum"},
	{`{"maximum":5}`, `{"maximum":5,"exclusiveMaximum":5}`, "EXCLUSIVE_MAXIMUM_ADDED #/exclusiveMaximum"},
	{`{"type":"number","exclusiveMaximum":5}`, `{"type":"number"}`, "EXCLUSIVE_MAXIMUM_REMOVED #/exclusiveMaximum"},
	{`{"maximum":5,"exclusiveMaximum":5}`, `{"maximum":5}`, "EXCLUSIVE_MAXIMUM_REMOVED #/exclusiveMaximum"},
	{
		`{"type":"number","exclusiveMaximum":5}`, `{"type":"number","exclusiveMaximum":6}`,
		"EXCLUSIVE_MAXIMUM_INCREASED #/exclusiveMaximum",
	},
	{`{"exclusiveMaximum":1}`, `{"exclusiveMaximum":10}`, "EXCLUSIVE_MAXIMUM_INCREASED #/exclusiveMaximum"},
	{
		`{"type":"number","exclusiveMaximum":6}`, `{"type":"number","exclusiveMaximum":5}`,
		"EXCLUSIVE_MAXIMUM_DECREASED #/exclusiveMaximum",
	},
	{`{"exclusiveMaximum":10}`, `{"exclusiveMaximum":1}`, "EXCLUSIVE_MAXIMUM_DECREASED #/exclusiveMaximum"},
	{`{"type":"number"}`, `{"type":"number","exclusiveMinimum":5}`, "EXCLUSIVE_MINIMUM_ADDED #/exclusiveMinimum"},
	{`{"maximum":5}`, `{"maximum":5,"exclusiveMinimum":5}`, "EXCLUSIVE_MINIMUM_ADDED #/exclusiveMinimum"},
	{`{"type":"number","exclusiveMinimum":5}`, `{"type":"number"}`, "EXCLUSIVE_MINIMUM_REMOVED #/exclusiveMinimum"},
	{
		`{"type":"number","exclusiveMinimum":10}`, `{"type":"number","minimum":10}`,
		"MINIMUM_ADDED #/minimum; EXCLUSIVE_MINIMUM_REMOVED #/exclusiveMinimum",
	},
	{
		`{"type":"number","exclusiveMinimum":5}`, `{"type":"number","exclusiveMinimum":6}`,
		"EXCLUSIVE_MINIMUM_INCREASED #/exclusiveMinimum",
	},
	{`{"exclusiveMinimum":1}`, `{"exclusiveMinimum":10}`, "EXCLUSIVE_MINIMUM_INCREASED #/exclusiveMinimum"},
	{
		`{"type":"number","exclusiveMinimum":6}`, `{"type":"number","exclusiveMinimum":5}`,
		"EXCLUSIVE_MINIMUM_DECREASED #/exclusiveMinimum",
	},
	{`{"exclusiveMinimum":10}`, `{"exclusiveMinimum":1}`, "EXCLUSIVE_MINIMUM_DECREASED #/exclusiveMinimum"},
	{`{"type":"number"}`, `{"type":"number","multipleOf":5}`, "MULTIPLE_OF_ADDED #/multipleOf"},
	{`{"minimum":1}`, `{"minimum":1,"multipleOf":5}`, "MULTIPLE_OF_ADDED #/multipleOf"},
	{`{"type":"number","multipleOf":5}`, `{"type":"number"}`, "MULTIPLE_OF_REMOVED #/multipleOf"},
	{`{"minimum":1,"multipleOf":5}`, `{"minimum":1}`, "MULTIPLE_OF_REMOVED #/multipleOf"},
	{`{"type":"number","multipleOf":5}`, `{"type":"number","multipleOf":10}`, "MULTIPLE_OF_EXPANDED #/multipleOf"},
	{`{"multipleOf":0.5}`, `{"multipleOf":10}`, "MULTIPLE_OF_EXPANDED #/multipleOf"},
	{`{"type":"number","multipleOf":10}`, `{"type":"number","multipleOf":5}`, "MULTIPLE_OF_REDUCED #/multipleOf"},
	{`{"multipleOf":1}`, `{"multipleOf":0.01}`, "MULTIPLE_OF_REDUCED #/multipleOf"},
	{`{"type":"number","multipleOf":10}`, `{"type":"number","multipleOf":11}`, "MULTIPLE_OF_CHANGED #/multipleOf"},
	{`{"multipleOf":0.3}`, `{"multipleOf":0.2}`, "MULTIPLE_OF_CHANGED #/multipleOf"},
	{`{"multipleOf":0.5}`, `{"multipleOf":0.50}`, ""},

	// Enumerations and constants.
	{`{"enum":["a"]}`, `{"enum":["b","a"]}`, "ENUM_ARRAY_EXTENDED #/enum"},
	{`{"enum":[1]}`, `{"enum":[1.0,null]}`, "ENUM_ARRAY_EXTENDED #/enum"},
	{`{"enum":["a","b"]}`, `{"enum":["a"]}`, "ENUM_ARRAY_NARROWED #/enum"},
	{`{"enum":[{"x":1,"y":2},[]]}`, `{"enum":[{"y":2,"x":1}]}`, "ENUM_ARRAY_NARROWED #/enum"},
	{`{"enum":["a","b"]}`, `{"enum":["b","c"]}`, "ENUM_ARRAY_CHANGED #/enum"},
	{`{"const":"a"}`, `{"const":"b"}`, "ENUM_ARRAY_CHANGED #/const"},
	{`{"enum":["a","b","a"]}`, `{"enum":["b","a"]}`, ""},
	{`{"const":1}`, `{"const":1.0}`, ""},
	{`{"const":"a"}`, `{"enum":["a"]}`, "TYPE_CHANGED #/"},

	// Negation.
	{`{"not":{"type":"number"}}`, `{"not":{"type":"integer"}}`, "NOT_TYPE_NARROWED #/not"},
	{obj(`"a":{"not":{}}`, ""), obj(`"a":{"not":{"type":"null"}}`, ""), "NOT_TYPE_NARROWED #/properties/a/not"},
	{`{"not":{"type":"integer"}}`, `{"not":{"type":"number"}}`, "NOT_TYPE_EXTENDED #/not"},
	{`{"not":{"not":{"type":"number"}}}`, `{"not":{"not":{"type":"integer"}}}`, "NOT_TYPE_EXTENDED #/not"},
	{`{"not":{"type":"integer"}}`, `{"not":{"type":"integer"}}`, ""},

	// Required.
	{obj(`"a":{}`, `,"required":["a"]`), obj(`"a":{}`, ""), "REQUIRED_ATTRIBUTE_REMOVED #/required/a"},
	{
		obj(`"a":{},"b":{}`, `,"required":["a","b"]`), obj(`"a":{},"b":{}`, `,"required":["b"]`),
		"REQUIRED_ATTRIBUTE_REMOVED #/required/a",
	},
	{obj(`"a":{}`, ""), obj(`"a":{}`, `,"required":["a"]`), "REQUIRED_ATTRIBUTE_ADDED #/required/a"},
	{
		obj(`"a":{},"b":{}`, closed), obj(`"a":{},"b":{}`, `,"required":["b","a"]`+closed),
		"REQUIRED_ATTRIBUTE_ADDED #/required/a; REQUIRED_ATTRIBUTE_ADDED #/required/b",
	},
	{
		obj(`"a":{"default":1}`, ""), obj(`"a":{"default":1}`, `,"required":["a"]`),
		"REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED #/required/a",
	},
	{
		obj(`"a":{"$ref":"#/definitions/d"}`, `,"definitions":{"d":{"default":1}}`),
		obj(`"a":{"$ref":"#/definitions/d"}`, `,"definitions":{"d":{"default":1}},"required":["a"]`),
		"REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED #/required/a",
	},
	{obj(`"a":{}`, ""), obj(`"a":{}`, `,"required":["b"]`), ""},
	{obj(`"a":{}`, `,"required":["b"]`), obj(`"a":{}`, ``), ""},

	// Removed properties.
	{
		obj(`"a":{"type":"string"},"b":{}`, ""), obj(`"b":{}`, ""),
		"PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(`"a":false`, closed), obj(``, ""),
		"PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a; ADDITIONAL_PROPERTIES_ADDED #/additionalProperties",
	},
	{
		obj(`"a":{"type":"string"}`, closed), obj(``, closed),
		"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a",
	},
	{
		obj(`"a":{"type":"string"}`, ""), obj(``, `,"patternProperties":{"^x":{}}`),
		"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a",
	},
	{obj(`"a":false`, closed), obj(``, closed), "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"},
	{
		obj(`"a":{"$ref":"#/definitions/f"}`, closed+`,"definitions":{"f":false}`), obj(``, closed),
		"PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a",
	},
	{
		obj(`"xa":{"type":"integer"}`, closed), obj(``, closed+`,"patternProperties":{"^x":{"type":"number"}}`),
		"TYPE_EXTENDED #/properties/xa; PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/xa",
	},
	{
		obj(`"a":{"type":"string"}`, closed), obj(``, `,"additionalProperties":{"type":"string"}`),
		"PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a; ADDITIONAL_PROPERTIES_ADDED " +
			"#/additionalProperties",
	},
	{
		obj(`"a":{"type":"string"}`, closed), obj(``, `,"additionalProperties":{"type":"null"}`),
		"TYPE_CHANGED #/properties/a; PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a; " +
			"ADDITIONAL_PROPERTIES_ADDED #/additionalProperties",
	},
	{
		obj(`"ax":{"type":"number"}`, `,"patternProperties":{"x":{"type":"integer"}}`),
		obj(``, `,"patternProperties":{"x":{"type":"integer"}}`),
		"TYPE_NARROWED #/properties/ax; PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/ax",
	},

	// Added properties.
	{obj(``, ""), obj(`"a":{}`, ""), "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"},
	{
		`{"type":"object"}`, obj(`"a":true`, `,"required":["a"]`),
		"PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a",
	},
	{obj(``, ""), obj(`"a":{"type":"string"}`, ""), "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"},
	{
		`{"type":"object","additionalProperties":true}`, obj(`"a":false`, ""),
		"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, ""), obj(`"a":{"type":"string"}`, `,"required":["a"]`),
		"REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a",
	},
	{
		`{"required":["a"]}`, `{"required":["a"],"properties":{"a":{"enum":[1]}}}`,
		"REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, ""), obj(`"a":{"type":"string","default":""}`, `,"required":["a"]`),
		"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, ""), obj(`"a":{"type":"null","default":null}`, closed+`,"required":["a"]`),
		"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a; ADDITIONAL_PROPERTIES_REMOVED " +
			"#/additionalProperties",
	},
	{
		obj(``, closed), obj(`"a":{"type":"string"}`, closed),
		"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, `,"patternProperties":{"^x":{}}`), obj(`"a":false`, `,"patternProperties":{"^x":{}}`),
		"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, closed), obj(`"a":{"type":"string"}`, closed+`,"required":["a"]`),
		"REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, closed), obj(`"a":{}`, closed+`,"required":["a"]`),
		"REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, closed), obj(`"a":{"type":"string","default":"x"}`, closed+`,"required":["a"]`),
		"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, closed), obj(`"a":{"default":false}`, closed+`,"required":["a"]`),
		"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, closed+`,"patternProperties":{"^x":{"type":"integer"}}`),
		obj(`"x1":{"type":"number"}`, closed+`,"patternProperties":{"^x":{"type":"integer"}}`),
		"TYPE_EXTENDED #/properties/x1; PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/x1; " +
			"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/x1",
	},
	{
		obj(``, `,"additionalProperties":{"type":"string"}`),
		obj(`"a":{}`, `,"additionalProperties":{"type":"string"}`),
		"PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a; " +
			"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, `,"additionalProperties":{"type":"string"}`),
		obj(`"a":{"type":"null"}`, `,"additionalProperties":{"type":"string"}`),
		"TYPE_CHANGED #/properties/a; PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a; " +
			"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
	},
	{
		obj(``, `,"additionalProperties":{}`),
		obj(`"a":{"type":"null"}`, `,"required":["a"],"additionalProperties":{}`),
		"TYPE_CHANGED #/properties/a; PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a; " +
			"REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
	},

	// Additional and unevaluated properties.
	{
		`{"additionalProperties":false}`, `{"additionalProperties":true}`,
		"ADDITIONAL_PROPERTIES_ADDED #/additionalProperties",
	},
	{
		`{"additionalProperties":true}`, `{"additionalProperties":false}`,
		"ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties",
	},
	{
		`{"additionalProperties":{"type":"string"}}`, `{"additionalProperties":false}`,
		"ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties",
	},
	{
		`{"additionalProperties":true}`, `{"additionalProperties":{"type":"string"}}`,
		"ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties",
	},
	{
		`{"type":"object"}`, `{"type":"object","additionalProperties":{}}`,
		"ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties",
	},
	{
		`{"additionalProperties":{"type":"string"}}`, `{"additionalProperties":true}`,
		"ADDITIONAL_PROPERTIES_EXTENDED #/additionalProperties",
	},
	{
		`{"type":"object","additionalProperties":{}}`, `{"type":"object"}`,
		"ADDITIONAL_PROPERTIES_EXTENDED #/additionalProperties",
	},
	{
		`{"additionalProperties":{"type":"integer"}}`, `{"additionalProperties":{"type":"number"}}`,
		"TYPE_EXTENDED #/additionalProperties",
	},
	{
		in2020(`{"unevaluatedProperties":false}`), in2020(`{"unevaluatedProperties":true}`),
		"UNEVALUATED_PROPERTIES_ADDED #/unevaluatedProperties",
	},
	{
		in2020(`{"unevaluatedProperties":false}`), in2020(`{"unevaluatedProperties":{}}`),
		"UNEVALUATED_PROPERTIES_ADDED #/unevaluatedProperties",
	},
	{
		in2020(`{"type":"object"}`), in2020(`{"type":"object","unevaluatedProperties":false}`),
		"UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties",
	},
	{
		in2020(`{"unevaluatedProperties":{}}`), in2020(`{"unevaluatedProperties":false}`),
		"UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties",
	},
	{
		in2020(`{"unevaluatedProperties":true}`), in2020(`{"unevaluatedProperties":{"type":"null"}}`),
		"UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties",
	},
	{
		in2020(`{"type":"object"}`), in2020(`{"type":"object","unevaluatedProperties":{"type":"null"}}`),
		"UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties",
	},
	{
		in2020(`{"unevaluatedProperties":{"type":"null"}}`), in2020(`{"unevaluatedProperties":true}`),
		"UNEVALUATED_PROPERTIES_EXTENDED #/unevaluatedProperties",
	},
	{
		in2020(`{"type":"object","unevaluatedProperties":{}}`), in2020(`{"type":"object"}`),
		"UNEVALUATED_PROPERTIES_EXTENDED #/unevaluatedProperties",
	},
	{
		in2020(obj(``, `,"unevaluatedProperties":{"type":"string"}`)),
		in2020(obj(`"a":{"type":"string"}`, `,"unevaluatedProperties":{"type":"string"}`)),
		"PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a; " +
			"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
	},

	// Numbers of properties, dependencies.
	{`{"type":"object"}`, `{"type":"object","maxProperties":1}`, "MAX_PROPERTIES_ADDED #/maxProperties"},
	{`{"required":["a"]}`, `{"required":["a"],"maxProperties":1}`, "MAX_PROPERTIES_ADDED #/maxProperties"},
	{`{"type":"object","maxProperties":1}`, `{"type":"object"}`, "MAX_PROPERTIES_REMOVED #/maxProperties"},
	{`{"required":["a"],"maxProperties":1}`, `{"required":["a"]}`, "MAX_PROPERTIES_REMOVED #/maxProperties"},
	{`{"maxProperties":1}`, `{"maxProperties":2}`, "MAX_PROPERTIES_INCREASED #/maxProperties"},
	{
		`{"type":"object","maxProperties":9}`, `{"type":"object","maxProperties":10}`,
		"MAX_PROPERTIES_INCREASED #/maxProperties",
	},
	{`{"maxProperties":2}`, `{"maxProperties":1}`, "MAX_PROPERTIES_DECREASED #/maxProperties"},
	{
		`{"type":"object","maxProperties":10}`, `{"type":"object","maxProperties":9}`,
		"MAX_PROPERTIES_DECREASED #/maxProperties",
	},
	{`{"type":"object"}`, `{"type":"object","minProperties":1}`, "MIN_PROPERTIES_ADDED #/minProperties"},
	{`{"required":["a"]}`, `{"required":["a"],"minProperties":1}`, "MIN_PROPERTIES_ADDED #/minProperties"},
	{`{"type":"object","minProperties":1}`, `{"type":"object"}`, "MIN_PROPERTIES_REMOVED #/minProperties"},
	{`{"required":["a"],"minProperties":1}`, `{"required":["a"]}`, "MIN_PROPERTIES_REMOVED #/minProperties"},
	{`{"minProperties":1}`, `{"minProperties":2}`, "MIN_PROPERTIES_INCREASED #/minProperties"},
	{
		`{"type":"object","minProperties":9}`, `{"type":"object","minProperties":10}`,
		"MIN_PROPERTIES_INCREASED #/minProperties",
	},
	{`{"minProperties":2}`, `{"minProperties":1}`, "MIN_PROPERTIES_DECREASED #/minProperties"},
	{
		`{"type":"object","minProperties":10}`, `{"type":"object","minProperties":9}`,
		"MIN_PROPERTIES_DECREASED #/minProperties",
	},
	{
		`{"dependencies":{"a":["b"]}}`, `{"dependencies":{"a":["b"],"c":["d"]}}`,
		"DEPENDENCY_ARRAY_ADDED #/dependencies/c",
	},
	{
		in2020(`{"type":"object"}`), in2020(`{"type":"object","dependentRequired":{"c":["d"]}}`),
		"DEPENDENCY_ARRAY_ADDED #/dependencies/c",
	},
	{
		`{"dependencies":{"a":["b"],"c":["d"]}}`, `{"dependencies":{"a":["b"]}}`,
		"DEPENDENCY_ARRAY_REMOVED #/dependencies/c",
	},
	{
		in2020(`{"type":"object","dependentRequired":{"c":["d"]}}`), in2020(`{"type":"object"}`),
		"DEPENDENCY_ARRAY_REMOVED #/dependencies/c",
	},
	{`{"dependencies":{"a":["b"]}}`, `{"dependencies":{"a":["b","c"]}}`, "DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"},
	{
		in2020(`{"dependentRequired":{"a":["b"]}}`), in2020(`{"dependentRequired":{"a":["c","b"]}}`),
		"DEPENDENCY_ARRAY_EXTENDED #/dependencies/a",
	},
	{`{"dependencies":{"a":["b","c"]}}`, `{"dependencies":{"a":["b"]}}`, "DEPENDENCY_ARRAY_NARROWED #/dependencies/a"},
	{
		in2020(`{"dependentRequired":{"a":["c","b"]}}`), in2020(`{"dependentRequired":{"a":["b"]}}`),
		"DEPENDENCY_ARRAY_NARROWED #/dependencies/a",
	},
	{
		`{"dependencies":{"a":["b","c"]}}`, `{"dependencies":{"a":["b","d"]}}`,
		"DEPENDENCY_ARRAY_CHANGED #/dependencies/a",
	},
	{
		in2020(`{"dependentRequired":{"a":["b"]}}`), in2020(`{"dependentRequired":{"a":["c"]}}`),
		"DEPENDENCY_ARRAY_CHANGED #/dependencies/a",
	},
	{
		`{"type":"object"}`, `{"type":"object","dependencies":{"a":{"type":"object"}}}`,
		"DEPENDENCY_SCHEMA_ADDED #/dependencies/a",
	},
	{
		in2020(`{"type":"object"}`), in2020(`{"type":"object","dependentSchemas":{"a":{}}}`),
		"DEPENDENCY_SCHEMA_ADDED #/dependencies/a",
	},
	{
		`{"type":"object","dependencies":{"a":{"type":"object"}}}`, `{"type":"object"}`,
		"DEPENDENCY_SCHEMA_REMOVED #/dependencies/a",
	},
	{
		in2020(`{"type":"object","dependentSchemas":{"a":{}}}`), in2020(`{"type":"object"}`),
		"DEPENDENCY_SCHEMA_REMOVED #/dependencies/a",
	},
	{
		`{"dependencies":{"a":{"minProperties":1}}}`, `{"dependencies":{"a":{"minProperties":2}}}`,
		"MIN_PROPERTIES_INCREASED #/dependencies/a/minProperties",
	},
	{
		`{"dependencies":{"a":["b"]}}`, `{"dependencies":{"a":{"minProperties":2}}}`,
		"DEPENDENCY_ARRAY_REMOVED #/dependencies/a; DEPENDENCY_SCHEMA_ADDED #/dependencies/a",
	},

	// Arrays.
	{`{"type":"array"}`, `{"type":"array","items":{"type":"string"}}`, "SCHEMA_ADDED #/items"},
	{`{"minItems":1}`, `{"minItems":1,"items":true}`, "SCHEMA_ADDED #/items"},
	{`{"type":"array","items":{"type":"string"}}`, `{"type":"array"}`, "SCHEMA_REMOVED #/items"},
	{`{"minItems":1,"items":true}`, `{"minItems":1}`, "SCHEMA_REMOVED #/items"},
	{`{"items":{"type":"string"}}`, `{"items":{"type":"null"}}`, "TYPE_CHANGED #/items"},
	{`{"items":[{"type":"string"}]}`, `{"items":[{"type":"null"}]}`, "TYPE_CHANGED #/items/0"},
	{`{"items":[{},{"type":"null"}]}`, `{"items":[{}]}`, "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/1"},
	{
		in2020(`{"prefixItems":[{},false]}`), in2020(`{"prefixItems":[{}]}`),
		"ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/1",
	},
	{
		`{"items":[{},{}],"additionalItems":false}`, `{"items":[{}],"additionalItems":false}`,
		"ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1",
	},
	{
		in2020(`{"prefixItems":[{},{}],"items":false}`), in2020(`{"prefixItems":[{}],"items":false}`),
		"ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1",
	},
	{
		`{"items":[{},false],"additionalItems":false}`, `{"items":[{}],"additionalItems":false}`,
		"ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1",
	},
	{
		in2020(`{"prefixItems":[{},false],"items":false}`), in2020(`{"prefixItems":[{}],"items":false}`),
		"ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1",
	},
	{
		`{"items":[{},{"type":"integer"}],"additionalItems":{"type":"number"}}`,
		`{"items":[{}],"additionalItems":{"type":"number"}}`,
		"TYPE_EXTENDED #/items/1; ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
	},
	{
		in2020(`{"prefixItems":[{},{"type":"null"}],"unevaluatedItems":{"type":"null"}}`),
		in2020(`{"prefixItems":[{}],"unevaluatedItems":{"type":"null"}}`),
		"ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
	},
	{
		`{"items":[{},{"type":"number"}],"additionalItems":{"type":"integer"}}`,
		`{"items":[{}],"additionalItems":{"type":"integer"}}`,
		"TYPE_NARROWED #/items/1; ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
	},
	{
		in2020(`{"prefixItems":[{},{"type":"null"}],"items":{"type":"string"}}`),
		in2020(`{"prefixItems":[{}],"items":{"type":"string"}}`),
		"TYPE_CHANGED #/items/1; ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
	},
	{`{"items":[{}]}`, `{"items":[{},true]}`, "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"},
	{
		in2020(`{"prefixItems":[{}],"items":true}`), in2020(`{"prefixItems":[{},{}],"items":true}`),
		"ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/items/1",
	},
	{`{"items":[{}]}`, `{"items":[{},{"type":"null"}]}`, "ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"},
	{
		in2020(`{"prefixItems":[{}]}`), in2020(`{"prefixItems":[{},false]}`),
		"ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1",
	},
	{
		`{"items":[{}],"additionalItems":false}`, `{"items":[{},{}],"additionalItems":false}`,
		"ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1",
	},
	{
		in2020(`{"prefixItems":[{}],"unevaluatedItems":false}`),
		in2020(`{"prefixItems":[{},{}],"unevaluatedItems":false}`), "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1",
	},
	{
		`{"items":[{}],"additionalItems":{"type":"integer"}}`,
		`{"items":[{},{"type":"number"}],"additionalItems":{"type":"integer"}}`,
		"TYPE_EXTENDED #/items/1; ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
	},
	{
		in2020(`{"prefixItems":[{}],"items":{"type":"null"}}`),
		in2020(`{"prefixItems":[{},{}],"items":{"type":"null"}}`),
		"ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
	},
	{
		`{"items":[{}],"additionalItems":{"type":"number"}}`,
		`{"items":[{},{"type":"integer"}],"additionalItems":{"type":"number"}}`,
		"TYPE_NARROWED #/items/1; ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
	},
	{
		in2020(`{"prefixItems":[{}],"unevaluatedItems":{}}`),
		in2020(`{"prefixItems":[{},{"type":"null"}],"unevaluatedItems":{}}`),
		"TYPE_CHANGED #/items/1; ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
	},
	{`{"additionalItems":false}`, `{"additionalItems":true}`, "ADDITIONAL_ITEMS_ADDED #/additionalItems"},
	{in2020(`{"items":false}`), in2020(`{"items":true}`), "ADDITIONAL_ITEMS_ADDED #/additionalItems"},
	{`{"additionalItems":true}`, `{"additionalItems":false}`, "ADDITIONAL_ITEMS_REMOVED #/additionalItems"},
	{
		in2020(`{"prefixItems":[{}],"items":{"type":"null"}}`), in2020(`{"prefixItems":[{}],"items":false}`),
		"ADDITIONAL_ITEMS_REMOVED #/additionalItems",
	},
	{
		`{"items":[{}]}`, `{"items":[{}],"additionalItems":{"type":"null"}}`,
		"ADDITIONAL_ITEMS_NARROWED #/additionalItems",
	},
	{
		in2020(`{"prefixItems":[{}]}`), in2020(`{"prefixItems":[{}],"items":{"type":"null"}}`),
		"ADDITIONAL_ITEMS_NARROWED #/additionalItems",
	},
	{
		`{"items":[{}],"additionalItems":{"type":"null"}}`, `{"items":[{}]}`,
		"ADDITIONAL_ITEMS_EXTENDED #/additionalItems",
	},
	{
		in2020(`{"prefixItems":[{}],"items":{"type":"null"}}`), in2020(`{"prefixItems":[{}]}`),
		"ADDITIONAL_ITEMS_EXTENDED #/additionalItems",
	},
	{`{"additionalItems":{"type":"string"}}`, `{"additionalItems":{"type":"null"}}`, "TYPE_CHANGED #/additionalItems"},
	{
		in2020(`{"unevaluatedItems":false}`), in2020(`{"unevaluatedItems":true}`),
		"UNEVALUATED_ITEMS_ADDED #/unevaluatedItems",
	},
	{
		in2020(`{"unevaluatedItems":false}`), in2020(`{"unevaluatedItems":{"type":"null"}}`),
		"UNEVALUATED_ITEMS_ADDED #/unevaluatedItems",
	},
	{
		in2020(`{"type":"array"}`), in2020(`{"type":"array","unevaluatedItems":false}`),
		"UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems",
	},
	{
		in2020(`{"unevaluatedItems":{}}`), in2020(`{"unevaluatedItems":false}`),
		"UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems",
	},
	{
		in2020(`{"type":"array"}`), in2020(`{"type":"array","unevaluatedItems":{}}`),
		"UNEVALUATED_ITEMS_NARROWED #/unevaluatedItems",
	},
	{
		in2020(`{"unevaluatedItems":true}`), in2020(`{"unevaluatedItems":{"type":"null"}}`),
		"UNEVALUATED_ITEMS_NARROWED #/unevaluatedItems",
	},
	{
		in2020(`{"type":"array","unevaluatedItems":{}}`), in2020(`{"type":"array"}`),
		"UNEVALUATED_ITEMS_EXTENDED #/unevaluatedItems",
	},
	{
		in2020(`{"unevaluatedItems":{"type":"null"}}`), in2020(`{"unevaluatedItems":true}`),
		"UNEVALUATED_ITEMS_EXTENDED #/unevaluatedItems",
	},
	{`{"type":"array"}`, `{"type":"array","maxItems":1}`, "MAX_ITEMS_ADDED #/maxItems"},
	{`{"items":{}}`, `{"items":{},"maxItems":0}`, "MAX_ITEMS_ADDED #/maxItems"},
	{`{"type":"array","maxItems":1}`, `{"type":"array"}`, "MAX_ITEMS_REMOVED #/maxItems"},
	{`{"items":{},"maxItems":0}`, `{"items":{}}`, "MAX_ITEMS_REMOVED #/maxItems"},
	{`{"maxItems":1}`, `{"maxItems":2}`, "MAX_ITEMS_INCREASED #/maxItems"},
	{`{"type":"array","maxItems":9}`, `{"type":"array","maxItems":10}`, "MAX_ITEMS_INCREASED #/maxItems"},
	{`{"maxItems":2}`, `{"maxItems":1}`, "MAX_ITEMS_DECREASED #/maxItems"},
	{`{"type":"array","maxItems":10}`, `{"type":"array","maxItems":9}`, "MAX_ITEMS_DECREASED #/maxItems"},
	{`{"type":"array"}`, `{"type":"array","minItems":1}`, "MIN_ITEMS_ADDED #/minItems"},
	{`{"items":{}}`, `{"items":{},"minItems":0}`, "MIN_ITEMS_ADDED #/minItems"},
	{`{"type":"array","minItems":1}`, `{"type":"array"}`, "MIN_ITEMS_REMOVED #/minItems"},
	{`{"items":{},"minItems":0}`, `{"items":{}}`, "MIN_ITEMS_REMOVED #/minItems"},
	{`{"minItems":1}`, `{"minItems":2}`, "MIN_ITEMS_INCREASED #/minItems"},
	{`{"type":"array","minItems":9}`, `{"type":"array","minItems":10}`, "MIN_ITEMS_INCREASED #/minItems"},
	{`{"minItems":2}`, `{"minItems":1}`, "MIN_ITEMS_DECREASED #/minItems"},
	{`{"type":"array","minItems":10}`, `{"type":"array","minItems":9}`, "MIN_ITEMS_DECREASED #/minItems"},
	{`{"type":"array"}`, `{"type":"array","uniqueItems":true}`, "UNIQUE_ITEMS_ADDED #/uniqueItems"},
	{`{"uniqueItems":false}`, `{"uniqueItems":true}`, "UNIQUE_ITEMS_ADDED #/uniqueItems"},
	{`{"type":"array","uniqueItems":true}`, `{"type":"array"}`, "UNIQUE_ITEMS_REMOVED #/uniqueItems"},
	{`{"uniqueItems":true}`, `{"uniqueItems":false}`, "UNIQUE_ITEMS_REMOVED #/uniqueItems"},
	{in2020(`{"type":"array"}`), in2020(`{"type":"array","contains":{}}`), "MIN_CONTAINS_ADDED #/minContains"},
	{
		inDraft(draft2019, `{"type":"array"}`), inDraft(draft2019, `{"type":"array","contains":{},"minContains":2}`),
		"MIN_CONTAINS_ADDED #/minContains",
	},
	{in2020(`{"type":"array","contains":{}}`), in2020(`{"type":"array"}`), "MIN_CONTAINS_REMOVED #/minContains"},
	{
		in2020(`{"type":"array","contains":{},"minContains":3}`), in2020(`{"type":"array","minContains":3}`),
		"MIN_CONTAINS_REMOVED #/minContains",
	},
	{in2020(`{"contains":{}}`), in2020(`{"contains":{},"minContains":2}`), "MIN_CONTAINS_INCREASED #/minContains"},
	{in2020(`{"contains":{},"minContains":0}`), in2020(`{"contains":{}}`), "MIN_CONTAINS_INCREASED #/minContains"},
	{in2020(`{"contains":{},"minContains":2}`), in2020(`{"contains":{}}`), "MIN_CONTAINS_DECREASED #/minContains"},
	{in2020(`{"contains":{}}`), in2020(`{"contains":{},"minContains":0}`), "MIN_CONTAINS_DECREASED #/minContains"},
	{in2020(`{"contains":{}}`), in2020(`{"contains":{},"minContains":1}`), ""},
	{in2020(`{"contains":{}}`), in2020(`{"contains":{},"maxContains":2}`), "MAX_CONTAINS_ADDED #/maxContains"},
	{
		in2020(`{"type":"array","contains":{}}`), in2020(`{"type":"array","contains":{},"maxContains":1}`),
		"MAX_CONTAINS_ADDED #/maxContains",
	},
	{in2020(`{"contains":{},"maxContains":2}`), in2020(`{"contains":{}}`), "MAX_CONTAINS_REMOVED #/maxContains"},
	{
		in2020(`{"type":"array","contains":{},"maxContains":1}`), in2020(`{"type":"array","contains":{}}`),
		"MAX_CONTAINS_REMOVED #/maxContains",
	},
	{
		in2020(`{"contains":{},"maxContains":2}`), in2020(`{"contains":{},"maxContains":3}`),
		"MAX_CONTAINS_INCREASED #/maxContains",
	},
	{
		in2020(`{"type":"array","contains":{},"maxContains":9}`),
		in2020(`{"type":"array","contains":{},"maxContains":10}`), "MAX_CONTAINS_INCREASED #/maxContains",
	},
	{
		in2020(`{"contains":{},"maxContains":3}`), in2020(`{"contains":{},"maxContains":2}`),
		"MAX_CONTAINS_DECREASED #/maxContains",
	},
	{
		in2020(`{"type":"array","contains":{},"maxContains":10}`),
		in2020(`{"type":"array","contains":{},"maxContains":9}`), "MAX_CONTAINS_DECREASED #/maxContains",
	},
	{`{"contains":{"type":"string"}}`, `{"contains":{"type":"null"}}`, ""},
	{`{"propertyNames":{"minLength":1}}`, `{"propertyNames":{"minLength":2}}`, ""},
	{`{"if":{"type":"string"},"then":false}`, `{"if":{"type":"null"},"else":false}`, ""},

	// One side combined.
	{`{"type":"string"}`, `{"oneOf":[{"type":"null"},{"type":"string"}]}`, "SUM_TYPE_EXTENDED #/"},
	{
		`{"type":"string","maxLength":3}`, `{"anyOf":[{"type":"null"},{"type":"string"}]}`,
		"MAX_LENGTH_REMOVED #/maxLength; SUM_TYPE_EXTENDED #/",
	},
	{`{"type":"string"}`, `{"oneOf":[{"type":"null"},{"type":"number"}]}`, "TYPE_CHANGED #/"},
	{`{"type":"string"}`, `{"allOf":[{"type":"string"}]}`, ""},
	{`{"type":"string"}`, `{"oneOf":[{"type":"null"}]}`, "TYPE_CHANGED #/"},
	{`{"type":"string"}`, `{"allOf":[{"type":"string"},{"maxLength":5}]}`, "TYPE_CHANGED #/"},
	{`{"type":"string"}`, `{"type":["string","null"]}`, "SUM_TYPE_EXTENDED #/"},
	{`{"type":"string"}`, `{"type":["string"]}`, ""},
	{`{"type":["string"]}`, `{"type":"string"}`, ""},
	{`{"type":["string","null"]}`, `{"type":"string"}`, "TYPE_CHANGED #/"},
	{`{"allOf":[{"type":"string"},{"enum":["a"]}]}`, `{"type":"string"}`, "PRODUCT_TYPE_NARROWED #/"},
	{`{"type":"string","enum":["a"]}`, `{"enum":["a","b"]}`, "ENUM_ARRAY_EXTENDED #/enum; PRODUCT_TYPE_NARROWED #/"},
	{`{"allOf":[{"type":"string"},{"enum":["a"]}]}`, `{"type":"null"}`, "TYPE_CHANGED #/"},
	{`{"oneOf":[{"type":"string"}]}`, `{"type":"string"}`, ""},
	{`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `{"type":"string"}`, "TYPE_CHANGED #/"},
	{`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `{}`, ""},
	{`{"type":"integer"}`, `{"type":"integer","format":"int64"}`, "TYPE_CHANGED #/"},
	{`{"type":"integer","format":"int64"}`, `{"type":"integer"}`, "PRODUCT_TYPE_NARROWED #/"},

	// Both sides combined.
	{`{"oneOf":[{"type":"string"}]}`, `{"anyOf":[{"type":"string"}]}`, "COMBINED_TYPE_EXTENDED #/"},
	{
		`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`,
		"COMBINED_TYPE_EXTENDED #/",
	},
	{`{"oneOf":[{"type":"string"}]}`, `{"allOf":[{"type":"string"}]}`, "COMBINED_TYPE_EXTENDED #/"},
	{`{"anyOf":[{"type":"string"}]}`, `{"oneOf":[{"type":"string"}]}`, "COMBINED_TYPE_EXTENDED #/"},
	{
		`{"allOf":[{"type":"string"}]}`, `{"oneOf":[{"type":"string"},{"type":"null"}]}`,
		"COMBINED_TYPE_EXTENDED #/; SUM_TYPE_EXTENDED #/",
	},
	{
		`{"allOf":[{"type":"string"},{"minLength":1}]}`, `{"oneOf":[{"type":"string"}]}`,
		"COMBINED_TYPE_EXTENDED #/; PRODUCT_TYPE_NARROWED #/",
	},
	{
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"oneOf":[{"type":"string"},{"type":"null"}]}`,
		"COMBINED_TYPE_CHANGED #/",
	},
	{`{"oneOf":[{"type":"string"}]}`, `{"allOf":[{"type":"string"},{"type":"number"}]}`, "COMBINED_TYPE_CHANGED #/"},
	{`{"oneOf":[{"type":"string"}]}`, `{"oneOf":[{"type":"null"},{"type":"string"}]}`, "SUM_TYPE_EXTENDED #/"},
	{`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `{"oneOf":[{"type":"string"}]}`, "SUM_TYPE_NARROWED #/"},
	{`{"type":["string","null"]}`, `{"type":["string"]}`, "SUM_TYPE_NARROWED #/"},
	{`{"allOf":[{"type":"string"}]}`, `{"allOf":[{"type":"string"},{"minLength":1}]}`, "PRODUCT_TYPE_EXTENDED #/"},
	{
		`{"type":"string","not":{"const":"a"}}`, `{"type":"string","not":{"const":"a"},"enum":["b"]}`,
		"PRODUCT_TYPE_EXTENDED #/; NOT_TYPE_NARROWED #/allOf/0/not",
	},
	{`{"allOf":[{"type":"string"},{"minLength":1}]}`, `{"allOf":[{"type":"string"}]}`, "PRODUCT_TYPE_NARROWED #/"},
	{`{"oneOf":[{"type":"string"}]}`, `{"oneOf":[{"type":"null"}]}`, "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"},
	{
		`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `{"anyOf":[{"type":"number"},{"type":"null"}]}`,
		"TYPE_EXTENDED #/anyOf/1; COMBINED_TYPE_SUBSCHEMAS_CHANGED #/",
	},
	{`{"oneOf":[{"type":"string"},{"type":"string"}]}`, `{"oneOf":[{"type":"string"}]}`, ""},
	{`{"allOf":[{"type":"string"}]}`, `{"allOf":[{"type":"string"},{"type":"string"}]}`, ""},
	{
		`{"oneOf":[{"type":"string","maxLength":1},{"type":"null"}]}`,
		`{"oneOf":[{"type":"null"},{"maxLength":2,"type":"string"}]}`, "MAX_LENGTH_INCREASED #/oneOf/0/maxLength",
	},
	// The first old branch is compatible with both new ones, the second only with the
	// first: a greedy pairing fails, a maximum matching does not.
	{
		`{"oneOf":[{"type":"integer"},{"type":"integer","maximum":5}]}`,
		`{"oneOf":[{"type":"integer","maximum":9},{"type":"number"}]}`,
		"TYPE_EXTENDED #/oneOf/0; MAXIMUM_INCREASED #/oneOf/1/maximum",
	},

	// References.
	{`{"type":"string"}`, `{"$ref":"#/definitions/a","definitions":{"a":{"type":"string"}}}`, ""},
	{`{"$ref":"#/definitions/a","definitions":{"a":{"type":"string"}}}`, `{"type":"string"}`, ""},
	{
		`{"items":{"$ref":"#/definitions/a"},"definitions":{"a":{"type":"string"}}}`,
		`{"items":{"$ref":"#/definitions/a"},"definitions":{"a":{"type":"null"}}}`,
		"TYPE_CHANGED #/items",
	},
	{
		obj(`"a":{"$ref":"#/definitions/d"},"b":{"$ref":"#/definitions/d"}`, `,"definitions":{"d":{"type":"string"}}`),
		obj(`"a":{"$ref":"#/definitions/d"},"b":{"$ref":"#/definitions/d"}`, `,"definitions":{"d":{"type":"null"}}`),
		"TYPE_CHANGED #/properties/a; TYPE_CHANGED #/properties/b",
	},
	{
		obj(`"a":{"$ref":"http://json-schema.org/draft-07/schema#"}`, ""),
		obj(`"a":{"$ref":"https://json-schema.org/draft-07/schema#"}`, ""), "",
	},
	{
		obj(`"a":{"$ref":"http://json-schema.org/draft-07/schema#"}`, ""),
		obj(`"a":{"$ref":"http://json-schema.org/draft-04/schema#"}`, ""), "TYPE_CHANGED #/properties/a",
	},
}
