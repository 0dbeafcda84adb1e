package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MessagingCluster is a data plane of an instance, with its own topics, subscriptions and schema
// registry. Clients reach it at the URLs in status.endpoints. If a create request has no name, the
// service generates one.
type MessagingCluster struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is the desired state of the cluster.
	// +optional
	Spec MessagingClusterSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status MessagingClusterStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// Release channels of a cluster.
const (
	ReleaseChannelRapid = "rapid"
	ReleaseChannelLTS   = "lts"
)

// MessagingClusterSpec is the desired state of a cluster.
type MessagingClusterSpec struct {
	// InstanceName is the MessagingInstance that owns the cluster. Cannot be changed.
	InstanceName string `json:"instanceName" protobuf:"bytes,1,opt,name=instanceName"`
	// Location is the region in which the cluster runs. The service selects a member of the
	// instance's pool in that region. Set location or poolMemberRef. Cannot be changed.
	// +optional
	Location string `json:"location,omitempty" protobuf:"bytes,2,opt,name=location"`
	// DisplayName is a name for users, at most 253 characters.
	// +optional
	DisplayName string `json:"displayName,omitempty" protobuf:"bytes,3,opt,name=displayName"`
	// PoolMemberRef is the pool member on which the cluster runs. If it is omitted, the service
	// sets it from the location. Cannot be changed.
	// +optional
	PoolMemberRef *ObjectReference `json:"poolMemberRef,omitempty" protobuf:"bytes,4,opt,name=poolMemberRef"`
	// ServiceEndpoints are the host names of the cluster. The service sets them.
	// +optional
	// +listType=atomic
	ServiceEndpoints []ServiceEndpoint `json:"serviceEndpoints,omitempty" protobuf:"bytes,5,rep,name=serviceEndpoints"`
	// EndpointAccess lists the gateways through which clients reach the cluster. It has no effect
	// on engine pebble; condition AsRequested reports that.
	// +optional
	// +listType=atomic
	EndpointAccess []EndpointAccess `json:"endpointAccess,omitempty" protobuf:"bytes,6,rep,name=endpointAccess"`
	// Broker describes the brokers of the cluster. On engine pebble the process of the server is
	// the broker; in an ensemble the process of every member is one. If the spec requests more,
	// condition AsRequested is False.
	// +optional
	Broker Broker `json:"broker" protobuf:"bytes,7,opt,name=broker"`
	// Storage describes the storage nodes of the cluster. Serverless clusters have no storage of
	// their own. On engine pebble the brokers store the data. If the spec requests more, condition
	// AsRequested is False.
	// +optional
	Storage *Storage `json:"storage,omitempty" protobuf:"bytes,8,opt,name=storage"`
	// Config enables features and sets options. If the engine does not support one of them,
	// condition AsRequested is False.
	// +optional
	Config *ClusterConfig `json:"config,omitempty" protobuf:"bytes,9,opt,name=config"`
	// ReleaseChannel is rapid (the default) or lts. It determines the images. Cannot be changed.
	// +optional
	ReleaseChannel string `json:"releaseChannel,omitempty" protobuf:"bytes,10,opt,name=releaseChannel"`
	// MaintenanceWindow is the time in which the service may restart components. It has no effect
	// on engine pebble, which restarts nothing automatically; condition AsRequested reports that.
	// +optional
	MaintenanceWindow *MaintenanceWindow `json:"maintenanceWindow,omitempty" protobuf:"bytes,11,opt,name=maintenanceWindow"`
	// Tolerations are the tolerations of the cluster's workloads. They have no effect on engine
	// pebble; condition AsRequested reports that.
	// +optional
	// +listType=atomic
	Tolerations []Toleration `json:"tolerations,omitempty" protobuf:"bytes,12,rep,name=tolerations"`
	// Volume is the name of the object storage volume of the cluster. It has no effect on engine
	// pebble; condition AsRequested reports that.
	// +optional
	Volume string `json:"volume,omitempty" protobuf:"bytes,13,opt,name=volume"`
	// Catalogs are the table catalogs to which the cluster publishes. They have no effect on engine
	// pebble; condition AsRequested reports that.
	// +optional
	// +listType=set
	Catalogs []string `json:"catalogs,omitempty" protobuf:"bytes,14,rep,name=catalogs"`
	// TableFormat is the format of the tables that the cluster publishes. It has no effect on
	// engine pebble; condition AsRequested reports that.
	// +optional
	TableFormat string `json:"tableFormat,omitempty" protobuf:"bytes,15,opt,name=tableFormat"`
}

// ServiceEndpoint is a host name of a cluster.
type ServiceEndpoint struct {
	// DNSName is the host name to connect to.
	DNSName string `json:"dnsName" protobuf:"bytes,1,opt,name=dnsName"`
	// Type is service, or empty for an ingress.
	// +optional
	Type string `json:"type,omitempty" protobuf:"bytes,2,opt,name=type"`
	// Gateway is the gateway through which clients reach the host name, if any.
	// +optional
	Gateway string `json:"gateway,omitempty" protobuf:"bytes,3,opt,name=gateway"`
}

// EndpointAccess is a gateway to a cluster.
type EndpointAccess struct {
	// Gateway is the name of the gateway.
	// +optional
	Gateway string `json:"gateway,omitempty" protobuf:"bytes,1,opt,name=gateway"`
}

// Broker describes the brokers of a cluster.
type Broker struct {
	// Replicas is the number of brokers, 1 to 15. The default is the number that runs: engine pebble
	// always runs one broker, in an ensemble one per member. If more are requested, condition
	// AsRequested is False.
	// +optional
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`
	// Image is the name of the image. The service sets it from the release channel.
	// +optional
	Image string `json:"image,omitempty" protobuf:"bytes,2,opt,name=image"`
	// Resources are the resources of each replica. Engine pebble uses the resources of the server's
	// process: memory limits the buffers of the cluster, and the other fields have no effect, which
	// condition AsRequested reports.
	// +optional
	Resources *BrokerResources `json:"resources,omitempty" protobuf:"bytes,3,opt,name=resources"`
	// ResourceSpec selects resources by node type. The field resources takes precedence. Engine
	// pebble has the node type shared: the server's process.
	// +optional
	ResourceSpec *BrokerResourceSpec `json:"resourceSpec,omitempty" protobuf:"bytes,4,opt,name=resourceSpec"`
	// AutoScalingPolicy scales the number of replicas with the load. It has no effect on engine
	// pebble; condition AsRequested reports that.
	// +optional
	AutoScalingPolicy *AutoScalingPolicy `json:"autoScalingPolicy,omitempty" protobuf:"bytes,5,opt,name=autoScalingPolicy"`
}

// BrokerResources are the resources of a broker.
type BrokerResources struct {
	// CPU is the number of CPUs, from 400m to 16.
	CPU resource.Quantity `json:"cpu" protobuf:"bytes,1,opt,name=cpu"`
	// Memory is the size of the memory, from 1.6Gi to 64Gi.
	Memory resource.Quantity `json:"memory" protobuf:"bytes,2,opt,name=memory"`
	// HeapPercentage is the percentage of memory for the heap. 0 means the default.
	// +optional
	HeapPercentage int32 `json:"heapPercentage,omitempty" protobuf:"varint,3,opt,name=heapPercentage"`
	// DirectPercentage is the percentage of memory for direct buffers. 0 means the default.
	// Together with heapPercentage it is at most 100.
	// +optional
	DirectPercentage int32 `json:"directPercentage,omitempty" protobuf:"varint,4,opt,name=directPercentage"`
}

// BrokerResourceSpec selects the resources of a broker by node type.
type BrokerResourceSpec struct {
	// NodeType is the name of a size. Engine pebble has shared: the server's process.
	// +optional
	NodeType string `json:"nodeType,omitempty" protobuf:"bytes,1,opt,name=nodeType"`
}

// AutoScalingPolicy limits the number of replicas.
type AutoScalingPolicy struct {
	// MinReplicas is the minimum number of replicas: at least 1 for brokers, 3 for storage nodes.
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty" protobuf:"varint,1,opt,name=minReplicas"`
	// MaxReplicas is the maximum number of replicas, at least minReplicas and at most 15.
	MaxReplicas int32 `json:"maxReplicas" protobuf:"varint,2,opt,name=maxReplicas"`
}

// Storage describes the storage nodes of a cluster.
type Storage struct {
	// Replicas is the number of storage nodes, 3 to 15, or the number that runs, which is the default.
	// In an ensemble it is the number of members that have a copy of each shard, 3 by default. A
	// single server always has one copy. If more copies are requested than the ensemble has members,
	// condition AsRequested is False.
	// +optional
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`
	// Image is the name of the image. The service sets it from the release channel.
	// +optional
	Image string `json:"image,omitempty" protobuf:"bytes,2,opt,name=image"`
	// Resources are the resources of each replica. On engine pebble ledgerDisk and journalDisk limit
	// the bytes of messages that the cluster stores. The other fields have no effect, because storage
	// uses the resources of the server's process; condition AsRequested reports that.
	// +optional
	Resources *StorageResources `json:"resources,omitempty" protobuf:"bytes,3,opt,name=resources"`
	// ResourceSpec selects resources by node type. The field resources takes precedence. Engine
	// pebble has the node type shared: the server's process.
	// +optional
	ResourceSpec *StorageResourceSpec `json:"resourceSpec,omitempty" protobuf:"bytes,4,opt,name=resourceSpec"`
	// AutoScalingPolicy scales the number of replicas with the load. It has no effect on engine
	// pebble; condition AsRequested reports that.
	// +optional
	AutoScalingPolicy *AutoScalingPolicy `json:"autoScalingPolicy,omitempty" protobuf:"bytes,5,opt,name=autoScalingPolicy"`
}

// StorageResources are the resources of a storage node.
type StorageResources struct {
	// CPU is the number of CPUs, from 400m to 16.
	CPU resource.Quantity `json:"cpu" protobuf:"bytes,1,opt,name=cpu"`
	// Memory is the size of the memory, from 1.6Gi to 64Gi.
	Memory resource.Quantity `json:"memory" protobuf:"bytes,2,opt,name=memory"`
	// HeapPercentage is the percentage of memory for the heap. 0 means the default.
	// +optional
	HeapPercentage int32 `json:"heapPercentage,omitempty" protobuf:"varint,3,opt,name=heapPercentage"`
	// DirectPercentage is the percentage of memory for direct buffers. 0 means the default.
	// Together with heapPercentage it is at most 100.
	// +optional
	DirectPercentage int32 `json:"directPercentage,omitempty" protobuf:"varint,4,opt,name=directPercentage"`
	// LedgerDisk is the size of the disk for messages. Together with journalDisk it limits the bytes
	// of messages that the cluster stores: producers get an error of an exceeded quota. A size below
	// what is stored deletes nothing. If it is omitted or 0, the size is not limited.
	// +optional
	LedgerDisk *resource.Quantity `json:"ledgerDisk,omitempty" protobuf:"bytes,5,opt,name=ledgerDisk"`
	// JournalDisk is the size of the disk for the journal. It is added to ledgerDisk; without
	// ledgerDisk it has no effect.
	// +optional
	JournalDisk *resource.Quantity `json:"journalDisk,omitempty" protobuf:"bytes,6,opt,name=journalDisk"`
}

// StorageResourceSpec selects the resources of a storage node by node type.
type StorageResourceSpec struct {
	// NodeType is the name of a size. Engine pebble has shared: the server's process.
	// +optional
	NodeType string `json:"nodeType,omitempty" protobuf:"bytes,1,opt,name=nodeType"`
	// StorageSize is the name of a disk size. It has no effect on engine pebble; condition
	// AsRequested reports that.
	// +optional
	StorageSize string `json:"storageSize,omitempty" protobuf:"bytes,2,opt,name=storageSize"`
}

// ClusterConfig enables features and sets options of a cluster.
type ClusterConfig struct {
	// WebsocketEnabled enables the WebSocket interface. Engine pebble does not have it; condition
	// AsRequested reports that.
	// +optional
	WebsocketEnabled *bool `json:"websocketEnabled,omitempty" protobuf:"varint,1,opt,name=websocketEnabled"`
	// FunctionEnabled enables functions. Engine pebble does not have them; condition AsRequested
	// reports that.
	// +optional
	FunctionEnabled *bool `json:"functionEnabled,omitempty" protobuf:"varint,2,opt,name=functionEnabled"`
	// TransactionEnabled enables transactions. Engine pebble does not have them; condition
	// AsRequested reports that.
	// +optional
	TransactionEnabled *bool `json:"transactionEnabled,omitempty" protobuf:"varint,3,opt,name=transactionEnabled"`
	// Protocols maps the name of each enabled protocol to its settings. An entry, even an empty
	// object, enables the protocol; null disables it. A new cluster that omits the field has the
	// protocol stream; an empty object enables none. Settings have any fields: at most 16 KiB as
	// JSON and 16 levels deep for each protocol, 64 KiB in total. Engine pebble supports stream,
	// the Kafka protocol. Other protocols are stored without effect, and condition AsRequested is
	// False.
	// +optional
	Protocols map[string]ProtocolSettings `json:"protocols,omitempty" protobuf:"bytes,4,rep,name=protocols"`
	// AuditLog selects the calls that are logged. It has no effect on engine pebble, which always
	// logs writes, administrative calls and denials; condition AsRequested reports that.
	// +optional
	AuditLog *AuditLog `json:"auditLog,omitempty" protobuf:"bytes,5,opt,name=auditLog"`
	// LakehouseStorage offloads topics to a lakehouse. Once it is enabled, it cannot be disabled.
	// It has no effect on engine pebble; condition AsRequested reports that.
	// +optional
	LakehouseStorage *LakehouseStorage `json:"lakehouseStorage,omitempty" protobuf:"bytes,6,opt,name=lakehouseStorage"`
	// Custom maps keys to settings of this cluster. Known keys are registry.format (the value
	// honour enables the query parameter format of the schema registry), quota.… (limits of this
	// cluster alone, for example quota.topics) and shards (the number of shards in an ensemble, 1
	// to 64; it cannot be changed). Other keys are stored without effect: the response has a
	// warning, and condition AsRequested is False.
	// +optional
	Custom map[string]string `json:"custom,omitempty" protobuf:"bytes,7,rep,name=custom"`
}

// AuditLog selects the calls that are logged.
type AuditLog struct {
	// Categories are any of Management, Describe, Produce and Consume, at least one.
	// +listType=set
	Categories []string `json:"categories" protobuf:"bytes,1,rep,name=categories"`
}

// LakehouseStorage describes a lakehouse.
type LakehouseStorage struct {
	// LakehouseType is the type of the lakehouse, for example iceberg.
	// +optional
	LakehouseType string `json:"lakehouseType,omitempty" protobuf:"bytes,1,opt,name=lakehouseType"`
	// CatalogType is the type of the lakehouse's catalog.
	// +optional
	CatalogType string `json:"catalogType,omitempty" protobuf:"bytes,2,opt,name=catalogType"`
	// CatalogConnectionURL is the URL of the lakehouse's catalog.
	// +optional
	CatalogConnectionURL string `json:"catalogConnectionUrl,omitempty" protobuf:"bytes,3,opt,name=catalogConnectionUrl"`
	// CatalogWarehouse is the warehouse in the lakehouse's catalog.
	// +optional
	CatalogWarehouse string `json:"catalogWarehouse,omitempty" protobuf:"bytes,4,opt,name=catalogWarehouse"`
}

// MaintenanceWindow is the time in which the service may restart components.
type MaintenanceWindow struct {
	// Recurrence lists days of the week, 0 (Monday) to 6 (Sunday), separated by commas.
	// +optional
	Recurrence string `json:"recurrence,omitempty" protobuf:"bytes,1,opt,name=recurrence"`
	// Window is the time on each of these days.
	// +optional
	Window *TimeWindow `json:"window,omitempty" protobuf:"bytes,2,opt,name=window"`
}

// TimeWindow is a time of day and a duration.
type TimeWindow struct {
	// StartTime is the time of day at which the window starts, as HH:MM in UTC.
	// +optional
	StartTime string `json:"startTime,omitempty" protobuf:"bytes,1,opt,name=startTime"`
	// Duration is the length of the window, at most 24h, for example 3h0m0s.
	// +optional
	Duration metav1.Duration `json:"duration,omitempty" protobuf:"bytes,2,opt,name=duration"`
}

// Toleration allows the cluster's workloads to run on nodes with a matching taint.
type Toleration struct {
	// Key is the key of the taint.
	// +optional
	Key string `json:"key,omitempty" protobuf:"bytes,1,opt,name=key"`
	// Operator is Exists or Equal.
	// +optional
	Operator string `json:"operator,omitempty" protobuf:"bytes,2,opt,name=operator"`
	// Value is the value of the taint.
	// +optional
	Value string `json:"value,omitempty" protobuf:"bytes,3,opt,name=value"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	// +optional
	Effect string `json:"effect,omitempty" protobuf:"bytes,4,opt,name=effect"`
}

// MessagingClusterStatus is the current state of a cluster.
type MessagingClusterStatus struct {
	// ObservedGeneration is the metadata.generation this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`
	// Broker counts the running brokers, whatever number the spec requests.
	// +optional
	Broker *ComponentStatus `json:"broker,omitempty" protobuf:"bytes,2,opt,name=broker"`
	// Storage counts the running storage nodes. In an ensemble it counts the copies of the shard
	// that has the fewest.
	// +optional
	Storage *ComponentStatus `json:"storage,omitempty" protobuf:"bytes,3,opt,name=storage"`
	// DeploymentType is the deployment type of the cluster's pool.
	// +optional
	DeploymentType string `json:"deploymentType,omitempty" protobuf:"bytes,4,opt,name=deploymentType"`
	// InstanceType is the type of the owning instance.
	// +optional
	InstanceType string `json:"instanceType,omitempty" protobuf:"bytes,5,opt,name=instanceType"`
	// RBACStatus lists roles and role bindings that could not be applied.
	// +optional
	RBACStatus *RBACStatus `json:"rbacStatus,omitempty" protobuf:"bytes,6,opt,name=rbacStatus"`
	// Conditions are, in this order: MetadataReady, StorageReady, BrokerReady and ProxyReady; in an
	// ensemble ShardsReady and FullyReplicated, and WritesSynced if its NATS servers are external;
	// AsRequested, which is False if fields of the spec have no effect, and lists them; Ready.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,7,rep,name=conditions"`
	// Endpoints are the complete URLs of the cluster's services: service (the prefix of the
	// others), messages, admin, topics and registry. They are derived from the server's base URL,
	// or from the address on which it listens. If the Kafka protocol is enabled there is also
	// stream, the bootstrap servers of Kafka clients.
	// +optional
	// +listType=atomic
	Endpoints []ClusterEndpoint `json:"endpoints,omitempty" protobuf:"bytes,8,rep,name=endpoints"`
	// Shards are the shards of the cluster in an ensemble, by number. A single server has none.
	// +optional
	// +listType=map
	// +listMapKey=number
	Shards []ShardStatus `json:"shards,omitempty" protobuf:"bytes,9,rep,name=shards"`
}

// ShardStatus is the state of a shard: a part of the cluster's topics that one member at a time
// owns.
type ShardStatus struct {
	// Number is the number of the shard. The first shard has number 0.
	Number int32 `json:"number" protobuf:"varint,1,opt,name=number"`
	// Owner is the member that serves the shard. It is empty while the shard has no owner.
	// +optional
	Owner string `json:"owner,omitempty" protobuf:"bytes,2,opt,name=owner"`
	// Epoch increases with every new owner of the shard.
	// +optional
	Epoch int64 `json:"epoch,omitempty" protobuf:"varint,3,opt,name=epoch"`
	// Copies are the copies of the shard, including the owner's.
	// +optional
	// +listType=map
	// +listMapKey=member
	Copies []ShardCopy `json:"copies,omitempty" protobuf:"bytes,4,rep,name=copies"`
}

// ShardCopy is a member's copy of a shard.
type ShardCopy struct {
	// Member is the name of the member.
	Member string `json:"member" protobuf:"bytes,1,opt,name=member"`
	// Live is true if the member is live.
	Live bool `json:"live" protobuf:"varint,2,opt,name=live"`
	// Lag is the number of entries of the shard's log that the copy has not applied, rounded down
	// to 1000 times a power of two. 0 means fewer than 1000, which is normal while clients produce
	// messages.
	// +optional
	Lag int64 `json:"lag,omitempty" protobuf:"varint,3,opt,name=lag"`
	// Problem is the reason why the copy cannot be used. It is empty if the copy can be used.
	// +optional
	Problem string `json:"problem,omitempty" protobuf:"bytes,4,opt,name=problem"`
}

// ClusterEndpoint has the URLs of a service of a cluster: one at the cluster's own host name, and
// one at the server's address.
type ClusterEndpoint struct {
	// Type is service, messages, admin, topics, registry or stream.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// URL is the URL at the cluster's own host name. For type stream it is the bootstrap server
	// with TLS.
	URL string `json:"url" protobuf:"bytes,2,opt,name=url"`
	// PathURL is the URL at the server's address. It needs no DNS record for the cluster's host
	// name. For type stream it is the bootstrap server without TLS.
	PathURL string `json:"pathURL" protobuf:"bytes,3,opt,name=pathURL"`
	// SASLName is the SASL user name with which Kafka clients select the cluster at pathURL. A tenant
	// and a namespace may precede it, for example public/default@acme/orders. Only type stream has it.
	// +optional
	SASLName string `json:"saslName,omitempty" protobuf:"bytes,4,opt,name=saslName"`
}

// Types of a cluster's endpoints.
const (
	EndpointService  = "service"  // the prefix of the others
	EndpointMessages = "messages" // produce, consume, acknowledge
	EndpointAdmin    = "admin"    // tenants, namespaces, topics, subscriptions
	EndpointTopics   = "topics"   // the list of topics
	EndpointRegistry = "registry" // the schema registry
	EndpointStream   = "stream"   // Kafka clients
)

// ComponentStatus counts the replicas of a component.
type ComponentStatus struct {
	// Replicas is the number of replicas.
	Replicas int32 `json:"replicas" protobuf:"varint,1,opt,name=replicas"`
	// ReadyReplicas is the number of replicas that serve requests.
	ReadyReplicas int32 `json:"readyReplicas" protobuf:"varint,2,opt,name=readyReplicas"`
	// UpdatedReplicas is the number of replicas that run with the newest spec.
	UpdatedReplicas int32 `json:"updatedReplicas" protobuf:"varint,3,opt,name=updatedReplicas"`
}

// RBACStatus lists roles and role bindings that could not be applied.
type RBACStatus struct {
	// FailedRoles are the roles that could not be applied.
	// +optional
	// +listType=atomic
	FailedRoles []string `json:"failedRoles,omitempty" protobuf:"bytes,1,rep,name=failedRoles"`
	// FailedClusterRoles are the cluster roles that could not be applied.
	// +optional
	// +listType=atomic
	FailedClusterRoles []string `json:"failedClusterRoles,omitempty" protobuf:"bytes,2,rep,name=failedClusterRoles"`
	// FailedRoleBindings are the role bindings that could not be applied.
	// +optional
	// +listType=atomic
	FailedRoleBindings []string `json:"failedRoleBindings,omitempty" protobuf:"bytes,3,rep,name=failedRoleBindings"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MessagingClusterList is a list of messaging clusters.
type MessagingClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the clusters.
	Items []MessagingCluster `json:"items" protobuf:"bytes,2,rep,name=items"`
}
