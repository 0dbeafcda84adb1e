package kafkaapi

// The fields of variable size without elements.
var (
	str  = versionedField{shapeField: shapeField{kind: fieldText}}
	raw  = versionedField{shapeField: shapeField{kind: fieldBytes, size: 1}}
	strs = versionedField{shapeField: shapeField{kind: fieldTexts, size: 16}}
)

// requestShapes are the layouts of the requests in allAPIs, by API key. The codec knows them, but not as
// data. TestShapesMatchTheCodec derives them from the codec and compares. Versions start at 0, so a field
// of the first supported version has no since.
var requestShapes = map[int16]requestShape{
	0: {"Produce", 9, never, fields{
		str.since(3), fixed(2), fixed(4),
		structs(64, str.until(12), fixed(16).since(13), structs(40, fixed(4), raw)),
	}},
	1: {"Fetch", 12, 12, fields{
		fixed(4).until(14), fixed(4), fixed(4), fixed(4), fixed(1), fixed(4).since(7), fixed(4).since(7),
		structs(64,
			str.until(12), fixed(16).since(13),
			structs(72, fixed(4), fixed(4).since(9), fixed(8), fixed(4).since(12), fixed(8).since(5), fixed(4))),
		structs(64, str.until(12), fixed(16).since(13), fixeds(4)).since(7), str.since(11),
	}},
	2: {"ListOffsets", 6, never, fields{
		fixed(4), fixed(1).since(2), structs(48, str, structs(32, fixed(4), fixed(4).since(4), fixed(8))),
		fixed(4).since(10),
	}},
	3: {"Metadata", 9, never, fields{
		structs(32, fixed(16).since(10), str), fixed(1).since(4), fixed(1).since(8).until(10),
		fixed(1).since(8),
	}},
	8: {"OffsetCommit", 8, never, fields{
		str, fixed(4), str, str.since(7), fixed(8).until(4),
		structs(64,
			str.until(9), fixed(16).since(10), structs(48, fixed(4), fixed(8), fixed(4).since(6), str)),
	}},
	9: {"OffsetFetch", 6, never, fields{
		str.until(7), structs(48, str, fixeds(4)).until(7),
		structs(64,
			str, str.since(9), fixed(4).since(9),
			structs(64, str.until(9), fixed(16).since(10), fixeds(4))).since(8),
		fixed(1).since(7),
	}},
	10: {"FindCoordinator", 3, never, fields{str.until(3), fixed(1).since(1), strs.since(4)}},
	11: {"JoinGroup", 6, never, fields{
		str, fixed(4), fixed(4).since(1), str, str.since(5), str, structs(48, str, raw), str.since(8),
	}},
	12: {"Heartbeat", 4, never, fields{str, fixed(4), str, str.since(3)}},
	13: {"LeaveGroup", 4, never, fields{str, str.until(2), structs(40, str, str, str.since(5)).since(3)}},
	14: {"SyncGroup", 4, never, fields{
		str, fixed(4), str, str.since(3), str.since(5), str.since(5), structs(48, str, raw),
	}},
	15: {"DescribeGroups", 5, never, fields{strs, fixed(1).since(3)}},
	16: {"ListGroups", 3, never, fields{strs.since(4), strs.since(5)}},
	17: {"SaslHandshake", never, never, fields{str}},
	18: {"ApiVersions", 3, never, fields{str.since(3), str.since(3)}},
	19: {"CreateTopics", 5, never, fields{
		structs(80, str, fixed(4), fixed(2), structs(40, fixed(4), fixeds(4)), structs(32, str, str)),
		fixed(4), fixed(1).since(1),
	}},
	20: {"DeleteTopics", 4, never, fields{strs.until(5), structs(32, str, fixed(16)).since(6), fixed(4)}},
	21: {"DeleteRecords", 2, never, fields{structs(48, str, structs(24, fixed(4), fixed(8))), fixed(4)}},
	22: {"InitProducerId", 2, never, fields{str, fixed(4), fixed(8).since(3), fixed(2).since(3)}},
	23: {"OffsetForLeaderEpoch", 4, never, fields{
		fixed(4).since(3), structs(48, str, structs(24, fixed(4), fixed(4), fixed(4))),
	}},
	29: {"DescribeAcls", 2, never, fields{fixed(1), str, fixed(1), str, str, fixed(1), fixed(1)}},
	32: {"DescribeConfigs", 4, never, fields{
		structs(56, fixed(1), str, strs), fixed(1).since(1), fixed(1).since(3),
	}},
	33: {"AlterConfigs", 2, never, fields{structs(56, fixed(1), str, structs(32, str, str)), fixed(1)}},
	35: {"DescribeLogDirs", 2, never, fields{structs(48, str, fixeds(4))}},
	36: {"SaslAuthenticate", 2, never, fields{raw}},
	37: {"CreatePartitions", 2, never, fields{
		structs(56, str, fixed(4), structs(32, fixeds(4))), fixed(4), fixed(1),
	}},
	42: {"DeleteGroups", 2, never, fields{strs}},
	44: {"IncrementalAlterConfigs", 1, never, fields{
		structs(56, fixed(1), str, structs(40, str, fixed(1), str)), fixed(1),
	}},
	47: {"OffsetDelete", never, never, fields{str, structs(40, str, structs(4, fixed(4)))}},
	60: {"DescribeCluster", 0, never, fields{fixed(1), fixed(1).since(1), fixed(1).since(2)}},
	61: {"DescribeProducers", 0, never, fields{structs(48, str, fixeds(4))}},
	68: {"ConsumerGroupHeartbeat", 0, never, fields{
		str, str, fixed(4), str, str, fixed(4), strs, str.since(1), str, structs(48, fixed(16), fixeds(4)),
	}},
	69: {"ConsumerGroupDescribe", 0, never, fields{strs, fixed(1)}},
	74: {"ListConfigResources", 0, never, fields{fixeds(1).since(1)}},
	75: {"DescribeTopicPartitions", 0, never, fields{structs(24, str), fixed(4), nullable(str, fixed(4))}},
	76: {"ShareGroupHeartbeat", 0, never, fields{str, str, fixed(4), str, strs}},
	77: {"ShareGroupDescribe", 0, never, fields{strs, fixed(1)}},
	78: {"ShareFetch", 0, never, fields{
		str, str, fixed(4), fixed(4), fixed(4), fixed(4), fixed(4), fixed(4), fixed(1).since(2), fixed(1).since(2),
		structs(48, fixed(16), structs(40, fixed(4), structs(48, fixed(8), fixed(8), fixeds(1)))),
		structs(48, fixed(16), fixeds(4)),
	}},
	79: {"ShareAcknowledge", 0, never, fields{
		str, str, fixed(4), fixed(1).since(2),
		structs(48, fixed(16), structs(40, fixed(4), structs(48, fixed(8), fixed(8), fixeds(1)))),
	}},
	90: {"DescribeShareGroupOffsets", 0, never, fields{structs(48, str, structs(48, str, fixeds(4)))}},
	91: {"AlterShareGroupOffsets", 0, never, fields{str, structs(48, str, structs(24, fixed(4), fixed(8)))}},
	92: {"DeleteShareGroupOffsets", 0, never, fields{str, structs(24, str)}},
}
