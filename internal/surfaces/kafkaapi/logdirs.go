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
	err := checkTopics(request.Topics, func(t *kmsg.DescribeLogDirsRequestTopic) int { return len(t.Partitions) })
	if err == nil {
		err = c.authorizeDescribeCluster(ctx)
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
	if disk := c.conn.server.opts.Disk; disk != nil {
		if total, free, err := disk.Space(); err == nil {
			dir.TotalBytes, dir.UsableBytes = total, free
		}
	}
	if request.Topics == nil {
		topics, err := c.visibleTopics(ctx)
		if err != nil {
			dir.ErrorCode = c.codeOf(err)
		}
		for _, topic := range topics {
			c.addSizes(ctx, &dir, c.displayName(topic.Name()), topic, allOf(topic))
		}
	}
	quiet := *c
	quiet.unaudited = true
	for i := range request.Topics {
		requested := &request.Topics[i]
		if topic, err := quiet.topic(ctx, requested.Topic, describePermissions...); err == nil {
			c.addSizes(ctx, &dir, requested.Topic, topic, requested.Partitions)
		}
	}
	response.Dirs = append(response.Dirs, dir)
	return nil
}

// authorizeDescribeCluster checks the permission to see how much the cluster stores.
func (c *call) authorizeDescribeCluster(ctx context.Context) error {
	scope := c.session.cluster.Scope
	_, err := c.conn.server.opts.Authorizer.Authorize(ctx, c.session.principal, permitDescribeCluster, scope)
	if err != nil && errs.KindOf(err) == errs.Denied {
		c.auditDenied(permitDescribeCluster, scope)
		return errClusterDenied
	}
	return err
}

func allOf(topic *messaging.KafkaTopic) []int32 {
	all := make([]int32, topic.Partitions())
	for i := range all {
		all[i] = int32(i) //nolint:gosec // bounded by the number of partitions
	}
	return all
}

// addSizes adds the requested partitions of a topic.
func (c *call) addSizes(ctx context.Context, dir *kmsg.DescribeLogDirsResponseDir, name string,
	topic *messaging.KafkaTopic, requested []int32,
) {
	stats, err := topic.PartitionStats(ctx)
	if err != nil {
		dir.ErrorCode = c.codeOf(err)
		return
	}
	row := kmsg.NewDescribeLogDirsResponseDirTopic()
	row.Topic = name
	for _, index := range requested {
		if index < 0 || int(index) >= len(stats) {
			continue
		}
		part := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		part.Partition, part.Size = index, stats[index].Bytes
		row.Partitions = append(row.Partitions, part)
	}
	dir.Topics = append(dir.Topics, row)
}
