package avro

// The limits. Those for depth and numbers are Jackson's, so Java rejects the same texts. The
// others only stop malicious input.
const (
	maxTextBytes    = 8 << 20  // one schema text; the HTTP API allows 5 MiB
	maxJSONDepth    = 1000     // nesting of a text, read or printed
	maxJSONValues   = 2 << 20  // JSON values in one schema
	maxNumberLength = 1000     // characters of one JSON number
	maxPrintedBytes = 24 << 20 // a printed schema; printing can lengthen names
	maxNameBytes    = 64 << 20 // all full names of one text together

	maxDefaultWork  = 4 << 20 // steps for validating default values
	maxDefaultDepth = 10_000

	maxCheckPairs    = 1 << 19 // cached pairs of one compatibility check
	maxCheckWork     = 16 << 20
	maxCheckDepth    = 10_000
	spendEvery       = 1 << 12 // steps between two reports to spend
	maxCheckProblems = 10_000  // problems reported by one check
	maxProblemBytes  = 4 << 20 // messages and paths of these problems together
	largeUnion       = 64      // number of branches from which a union gets an index

	maxDatumDepth = 10_000
	datumWorkBase = 1 << 17 // steps allowed for every message ...
	datumWorkByte = 32      // ... and for each of its bytes

	maxChanges      = 10_000    // entries in one list of changes
	maxQuotedChange = 200       // bytes of a value that a change quotes
	maxQuotedBytes  = 400       // bytes of the input that an error quotes
	maxQuotedSchema = 10 * 1024 // bytes of a schema that a compatibility message quotes
)
