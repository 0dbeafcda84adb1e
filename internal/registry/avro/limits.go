package avro

// The bounds. Those on depth and on numbers are the ones Java's JSON library
// imposes, so a text refused here is refused there as well; the others only
// stop input that was made to hurt.
const (
	maxTextBytes    = 8 << 20  // one schema text; the HTTP surface allows 5 MiB
	maxJSONDepth    = 1000     // nesting of a text, read or printed
	maxJSONValues   = 2 << 20  // JSON values in one schema
	maxNumberLength = 1000     // characters of one JSON number
	maxPrintedBytes = 24 << 20 // a printed schema; printing can lengthen names
	maxNameBytes    = 64 << 20 // all full names of one text together

	maxDefaultWork  = 4 << 20 // steps spent on validating default values
	maxDefaultDepth = 10_000

	maxCheckPairs    = 1 << 19 // remembered pairs of one compatibility check
	maxCheckWork     = 16 << 20
	maxCheckDepth    = 10_000
	spendEvery       = 1 << 12 // steps, and then they are reported
	maxCheckProblems = 10_000  // problems reported by one check
	maxProblemBytes  = 4 << 20 // of their messages and paths together
	largeUnion       = 64      // branches from which a union is searched by name

	maxDatumDepth = 10_000
	datumWorkBase = 1 << 17 // steps allowed for a message of no bytes ...
	datumWorkByte = 32      // ... and for each of its bytes

	maxChanges      = 10_000    // in one list of changes
	maxQuotedChange = 200       // of a value quoted in a change
	maxQuotedBytes  = 400       // of the input quoted in an error
	maxQuotedSchema = 10 * 1024 // of a schema quoted in a compatibility message
)
