package kafkaapi

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/errs"
	"freshet/internal/broker/messaging"
)

// logDir is the only log directory that clients see.
const logDir = "/"

// describeLogDirs returns the stored bytes of partitions. It omits topics that do not exist or that
// the caller may not describe.
func describeLogDirs(ctx context.Context, c *call, request *kmsg.DescribeLogDirsRequest,
	response *kmsg.DescribeLogDirsResponse,
) error {
	partitions := 0
	for i := range request.Topics {
		partitions += len(request.Topics[i].Partitions)
	}
	err := within(len(request.Topics), partitions)
	if err == nil {
		err = c.mayDescribeCluster(ctx)
	}
	if err != nil {
		response.ErrorCode = c.codeOf(err)
		if c.version < 3 { // older versions have no code for the whole response
			dir := kmsg.NewDescribeLogDirsResponseDir()
			dir.Dir, dir.ErrorCode = logDir, response.ErrorCode
			response.Dirs = append(response.Dirs, dir)
		}
		return nil
	}
	dir := kmsg.NewDescribeLogDirsResponseDir() // TotalBytes and UsableBytes are -1
	dir.Dir = logDir
	if disk := c.session.cluster.Disk; disk != nil {
		if total, free, err := disk(); err == nil {
			dir.TotalBytes, dir.UsableBytes = total, free
		}
	}
	if request.Topics == nil {
		topics, err := c.listed(ctx)
		if err != nil {
			dir.ErrorCode = c.codeOf(err)
		}
		for _, topic := range topics {
			c.addSizes(ctx, &dir, c.printed(topic.Name()), topic, allOf(topic))
		}
	}
	quiet := *c
	quiet.unaudited = true
	for i := range request.Topics {
		asked := &request.Topics[i]
		if topic, err := quiet.topic(ctx, asked.Topic, describing...); err == nil {
			c.addSizes(ctx, &dir, asked.Topic, topic, asked.Partitions)
		}
	}
	response.Dirs = append(response.Dirs, dir)
	return nil
}

// mayDescribeCluster checks the permission to see how much the cluster stores.
func (c *call) mayDescribeCluster(ctx context.Context) error {
	scope := c.session.cluster.Scope
	_, err := c.conn.server.opts.Authorizer.Authorize(ctx, c.session.who, permitDescribeCluster, scope)
	if err != nil && errs.KindOf(err) == errs.Denied {
		c.denied(permitDescribeCluster, scope)
		return errClusterDenied
	}
	return err
}

func allOf(topic *messaging.StreamTopic) []int32 {
	all := make([]int32, topic.Partitions())
	for i := range all {
		all[i] = int32(i) //nolint:gosec // bounded by the number of partitions
	}
	return all
}

// addSizes adds the requested partitions of a topic.
func (c *call) addSizes(ctx context.Context, dir *kmsg.DescribeLogDirsResponseDir, name string,
	topic *messaging.StreamTopic, asked []int32,
) {
	stats, err := topic.PartitionStats(ctx)
	if err != nil {
		dir.ErrorCode = c.codeOf(err)
		return
	}
	row := kmsg.NewDescribeLogDirsResponseDirTopic()
	row.Topic = name
	for _, index := range asked {
		if index < 0 || int(index) >= len(stats) {
			continue
		}
		part := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		part.Partition, part.Size = index, stats[index].Bytes
		row.Partitions = append(row.Partitions, part)
	}
	dir.Topics = append(dir.Topics, row)
}
