package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MessagingCluster is one running data plane of an instance: topics,
// subscriptions and a schema registry of its own, reached at the name in
// spec.serviceEndpoints. Create it with an empty name to have one made.
type MessagingCluster struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is what the cluster should be.
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

// MessagingClusterSpec is what the cluster should be.
type MessagingClusterSpec struct {
	// InstanceName is the MessagingInstance that owns the cluster. Cannot be changed.
	InstanceName string `json:"instanceName" protobuf:"bytes,1,opt,name=instanceName"`
	// Location is the region the cluster runs in; the service picks a member of
	// the instance's pool there. Cannot be changed.
	// +optional
	Location string `json:"location,omitempty" protobuf:"bytes,2,opt,name=location"`
	// DisplayName is a name for people.
	// +optional
	DisplayName string `json:"displayName,omitempty" protobuf:"bytes,3,opt,name=displayName"`
	// PoolMemberRef is the pool member the cluster runs on. The service sets it
	// from the location; it can be given instead of a location. Cannot be changed.
	// +optional
	PoolMemberRef *ObjectReference `json:"poolMemberRef,omitempty" protobuf:"bytes,4,opt,name=poolMemberRef"`
	// ServiceEndpoints are the names the cluster answers at; set by the service.
	// +optional
	// +listType=atomic
	ServiceEndpoints []ServiceEndpoint `json:"serviceEndpoints,omitempty" protobuf:"bytes,5,rep,name=serviceEndpoints"`
	// EndpointAccess lists the gateways through which the cluster can be reached.
	// Kept; without effect on engine pebble (condition AsRequested).
	// +optional
	// +listType=atomic
	EndpointAccess []EndpointAccess `json:"endpointAccess,omitempty" protobuf:"bytes,6,rep,name=endpointAccess"`
	// Broker describes the compute half. On engine pebble there is one broker, in
	// the server's process; what asks for more shows as condition AsRequested False.
	// +optional
	Broker Broker `json:"broker" protobuf:"bytes,7,opt,name=broker"`
	// Storage describes the storage half; serverless clusters have none of their own.
	// On engine pebble the broker stores; what asks for more shows as condition
	// AsRequested False.
	// +optional
	Storage *Storage `json:"storage,omitempty" protobuf:"bytes,8,opt,name=storage"`
	// Config switches features. What the engine does not have shows as condition
	// AsRequested False.
	// +optional
	Config *ClusterConfig `json:"config,omitempty" protobuf:"bytes,9,opt,name=config"`
	// ReleaseChannel is rapid (the default) or lts; it decides the images.
	// Cannot be changed.
	// +optional
	ReleaseChannel string `json:"releaseChannel,omitempty" protobuf:"bytes,10,opt,name=releaseChannel"`
	// MaintenanceWindow is when the service may restart things. Without effect on
	// engine pebble, which restarts nothing by itself (condition AsRequested).
	// +optional
	MaintenanceWindow *MaintenanceWindow `json:"maintenanceWindow,omitempty" protobuf:"bytes,11,opt,name=maintenanceWindow"`
	// Tolerations of the cluster's workloads. Without effect on engine pebble
	// (condition AsRequested).
	// +optional
	// +listType=atomic
	Tolerations []Toleration `json:"tolerations,omitempty" protobuf:"bytes,12,rep,name=tolerations"`
	// Volume names the object storage volume of the cluster. Without effect on
	// engine pebble (condition AsRequested).
	// +optional
	Volume string `json:"volume,omitempty" protobuf:"bytes,13,opt,name=volume"`
	// Catalogs are the table catalogues the cluster publishes to. Without effect on
	// engine pebble (condition AsRequested).
	// +optional
	// +listType=set
	Catalogs []string `json:"catalogs,omitempty" protobuf:"bytes,14,rep,name=catalogs"`
	// TableFormat of what the cluster publishes. Without effect on engine pebble
	// (condition AsRequested).
	// +optional
	TableFormat string `json:"tableFormat,omitempty" protobuf:"bytes,15,opt,name=tableFormat"`
}

// ServiceEndpoint is a name the cluster answers at.
type ServiceEndpoint struct {
	// DNSName to connect to.
	DNSName string `json:"dnsName" protobuf:"bytes,1,opt,name=dnsName"`
	// Type is service, or empty for an ingress.
	// +optional
	Type string `json:"type,omitempty" protobuf:"bytes,2,opt,name=type"`
	// Gateway through which the name is reached, if any.
	// +optional
	Gateway string `json:"gateway,omitempty" protobuf:"bytes,3,opt,name=gateway"`
}

// EndpointAccess names a gateway.
type EndpointAccess struct {
	// Gateway through which the cluster can be reached.
	// +optional
	Gateway string `json:"gateway,omitempty" protobuf:"bytes,1,opt,name=gateway"`
}

// Broker is the compute half of a cluster.
type Broker struct {
	// Replicas is the number of brokers, 1 to 15; 2 by default, 1 with nodeType
	// shared. Engine pebble runs 1, whatever is asked for (condition AsRequested).
	// +optional
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`
	// Image is set by the service from the release channel.
	// +optional
	Image string `json:"image,omitempty" protobuf:"bytes,2,opt,name=image"`
	// Resources of each replica; 1 CPU and 4Gi by default. Engine pebble uses what
	// the server's process has (condition AsRequested).
	// +optional
	Resources *BrokerResources `json:"resources,omitempty" protobuf:"bytes,3,opt,name=resources"`
	// ResourceSpec picks resources by node type; resources win over it. Engine
	// pebble has the node type shared: the server's process.
	// +optional
	ResourceSpec *BrokerResourceSpec `json:"resourceSpec,omitempty" protobuf:"bytes,4,opt,name=resourceSpec"`
	// AutoScalingPolicy lets the number of replicas follow the load. Without effect
	// on engine pebble (condition AsRequested).
	// +optional
	AutoScalingPolicy *AutoScalingPolicy `json:"autoScalingPolicy,omitempty" protobuf:"bytes,5,opt,name=autoScalingPolicy"`
}

// BrokerResources are the resources of one broker.
type BrokerResources struct {
	// CPU, from 400m to 16.
	CPU resource.Quantity `json:"cpu" protobuf:"bytes,1,opt,name=cpu"`
	// Memory, from 1.6Gi to 64Gi.
	Memory resource.Quantity `json:"memory" protobuf:"bytes,2,opt,name=memory"`
	// HeapPercentage of memory for the heap; 0 is the default.
	// +optional
	HeapPercentage int32 `json:"heapPercentage,omitempty" protobuf:"varint,3,opt,name=heapPercentage"`
	// DirectPercentage of memory for direct buffers; 0 is the default.
	// +optional
	DirectPercentage int32 `json:"directPercentage,omitempty" protobuf:"varint,4,opt,name=directPercentage"`
}

// BrokerResourceSpec picks resources by node type.
type BrokerResourceSpec struct {
	// NodeType names a size. Engine pebble has shared: the server's process.
	// +optional
	NodeType string `json:"nodeType,omitempty" protobuf:"bytes,1,opt,name=nodeType"`
}

// AutoScalingPolicy bounds the number of replicas.
type AutoScalingPolicy struct {
	// MinReplicas, 1 or more.
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty" protobuf:"varint,1,opt,name=minReplicas"`
	// MaxReplicas, at least minReplicas and at most 15.
	MaxReplicas int32 `json:"maxReplicas" protobuf:"varint,2,opt,name=maxReplicas"`
}

// Storage is the storage half of a cluster.
type Storage struct {
	// Replicas is the number of storage nodes, 3 to 15; 3 by default, none with
	// nodeType shared. Engine pebble stores in its 1 broker, whatever is asked for
	// (condition AsRequested).
	// +optional
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`
	// Image is set by the service from the release channel.
	// +optional
	Image string `json:"image,omitempty" protobuf:"bytes,2,opt,name=image"`
	// Resources of each replica; 1 CPU and 4Gi by default. Engine pebble uses what
	// the server's process has (condition AsRequested).
	// +optional
	Resources *StorageResources `json:"resources,omitempty" protobuf:"bytes,3,opt,name=resources"`
	// ResourceSpec picks resources by node type; resources win over it. Engine
	// pebble has the node type shared: the server's process.
	// +optional
	ResourceSpec *StorageResourceSpec `json:"resourceSpec,omitempty" protobuf:"bytes,4,opt,name=resourceSpec"`
	// AutoScalingPolicy lets the number of replicas follow the load. Without effect
	// on engine pebble (condition AsRequested).
	// +optional
	AutoScalingPolicy *AutoScalingPolicy `json:"autoScalingPolicy,omitempty" protobuf:"bytes,5,opt,name=autoScalingPolicy"`
}

// StorageResources are the resources of one storage node.
type StorageResources struct {
	// CPU, from 400m to 16.
	CPU resource.Quantity `json:"cpu" protobuf:"bytes,1,opt,name=cpu"`
	// Memory, from 1.6Gi to 64Gi.
	Memory resource.Quantity `json:"memory" protobuf:"bytes,2,opt,name=memory"`
	// HeapPercentage of memory for the heap; 0 is the default.
	// +optional
	HeapPercentage int32 `json:"heapPercentage,omitempty" protobuf:"varint,3,opt,name=heapPercentage"`
	// DirectPercentage of memory for direct buffers; 0 is the default.
	// +optional
	DirectPercentage int32 `json:"directPercentage,omitempty" protobuf:"varint,4,opt,name=directPercentage"`
	// LedgerDisk is the size of the message disk; the default when left out.
	// +optional
	LedgerDisk *resource.Quantity `json:"ledgerDisk,omitempty" protobuf:"bytes,5,opt,name=ledgerDisk"`
	// JournalDisk is the size of the journal disk; the default when left out.
	// +optional
	JournalDisk *resource.Quantity `json:"journalDisk,omitempty" protobuf:"bytes,6,opt,name=journalDisk"`
}

// StorageResourceSpec picks resources by node type.
type StorageResourceSpec struct {
	// NodeType names a size. Engine pebble has shared: the server's process.
	// +optional
	NodeType string `json:"nodeType,omitempty" protobuf:"bytes,1,opt,name=nodeType"`
	// StorageSize names the size of the disks.
	// +optional
	StorageSize string `json:"storageSize,omitempty" protobuf:"bytes,2,opt,name=storageSize"`
}

// ClusterConfig switches features of a cluster.
type ClusterConfig struct {
	// WebsocketEnabled switches the WebSocket interface, which engine pebble does
	// not have (condition AsRequested).
	// +optional
	WebsocketEnabled *bool `json:"websocketEnabled,omitempty" protobuf:"varint,1,opt,name=websocketEnabled"`
	// FunctionEnabled switches functions, which engine pebble does not have
	// (condition AsRequested).
	// +optional
	FunctionEnabled *bool `json:"functionEnabled,omitempty" protobuf:"varint,2,opt,name=functionEnabled"`
	// TransactionEnabled switches transactions, which engine pebble does not have
	// (condition AsRequested).
	// +optional
	TransactionEnabled *bool `json:"transactionEnabled,omitempty" protobuf:"varint,3,opt,name=transactionEnabled"`
	// Protocols that are on, with their settings; the presence of an entry, even an
	// empty one, switches its protocol on, and null switches it off. Settings can be
	// anything: at most 16 KiB as JSON and 16 levels deep each, 64 KiB together.
	// Protocols that the engine does not have are kept and show as condition
	// AsRequested False.
	// +optional
	Protocols map[string]ProtocolSettings `json:"protocols,omitempty" protobuf:"bytes,4,rep,name=protocols"`
	// AuditLog chooses what is logged. Without effect on engine pebble, which
	// always logs writes, administration and denials (condition AsRequested).
	// +optional
	AuditLog *AuditLog `json:"auditLog,omitempty" protobuf:"bytes,5,opt,name=auditLog"`
	// LakehouseStorage offloads topics to a lakehouse; it can be switched on
	// and never off. Without effect on engine pebble (condition AsRequested).
	// +optional
	LakehouseStorage *LakehouseStorage `json:"lakehouseStorage,omitempty" protobuf:"bytes,6,opt,name=lakehouseStorage"`
	// Custom are settings of this cluster by key. Known are registry.format (honour
	// the query parameter format of the schema registry), quota.… (limits of this
	// cluster alone) and shards (how many a group of members spreads the topics
	// over, 1 to 64; it cannot be changed). Other keys are kept, get a warning and
	// have no effect (condition AsRequested).
	// +optional
	Custom map[string]string `json:"custom,omitempty" protobuf:"bytes,7,rep,name=custom"`
}

// AuditLog chooses what is logged.
type AuditLog struct {
	// Categories: Management, Describe, Produce, Consume.
	// +listType=set
	Categories []string `json:"categories" protobuf:"bytes,1,rep,name=categories"`
}

// LakehouseStorage describes a lakehouse.
type LakehouseStorage struct {
	// LakehouseType, for example iceberg.
	// +optional
	LakehouseType string `json:"lakehouseType,omitempty" protobuf:"bytes,1,opt,name=lakehouseType"`
	// CatalogType of the lakehouse.
	// +optional
	CatalogType string `json:"catalogType,omitempty" protobuf:"bytes,2,opt,name=catalogType"`
	// CatalogConnectionURL of the lakehouse.
	// +optional
	CatalogConnectionURL string `json:"catalogConnectionUrl,omitempty" protobuf:"bytes,3,opt,name=catalogConnectionUrl"`
	// CatalogWarehouse of the lakehouse.
	// +optional
	CatalogWarehouse string `json:"catalogWarehouse,omitempty" protobuf:"bytes,4,opt,name=catalogWarehouse"`
}

// MaintenanceWindow is when the service may restart things.
type MaintenanceWindow struct {
	// Recurrence lists days of the week, 0 (Monday) to 6 (Sunday), separated by commas.
	// +optional
	Recurrence string `json:"recurrence,omitempty" protobuf:"bytes,1,opt,name=recurrence"`
	// Window is the time of day.
	// +optional
	Window *TimeWindow `json:"window,omitempty" protobuf:"bytes,2,opt,name=window"`
}

// TimeWindow is a time of day and how long it lasts.
type TimeWindow struct {
	// StartTime as HH:MM, UTC.
	// +optional
	StartTime string `json:"startTime,omitempty" protobuf:"bytes,1,opt,name=startTime"`
	// Duration, for example 3h0m0s.
	// +optional
	Duration metav1.Duration `json:"duration,omitempty" protobuf:"bytes,2,opt,name=duration"`
}

// Toleration lets workloads run where others may not.
type Toleration struct {
	// Key of the taint.
	// +optional
	Key string `json:"key,omitempty" protobuf:"bytes,1,opt,name=key"`
	// Operator is Exists or Equal.
	// +optional
	Operator string `json:"operator,omitempty" protobuf:"bytes,2,opt,name=operator"`
	// Value of the taint.
	// +optional
	Value string `json:"value,omitempty" protobuf:"bytes,3,opt,name=value"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	// +optional
	Effect string `json:"effect,omitempty" protobuf:"bytes,4,opt,name=effect"`
}

// MessagingClusterStatus is what the service made of the cluster.
type MessagingClusterStatus struct {
	// ObservedGeneration is the metadata.generation this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`
	// Broker counts what really runs.
	// +optional
	Broker *ComponentStatus `json:"broker,omitempty" protobuf:"bytes,2,opt,name=broker"`
	// Storage counts what really runs.
	// +optional
	Storage *ComponentStatus `json:"storage,omitempty" protobuf:"bytes,3,opt,name=storage"`
	// DeploymentType of the pool member.
	// +optional
	DeploymentType string `json:"deploymentType,omitempty" protobuf:"bytes,4,opt,name=deploymentType"`
	// InstanceType is the type of the owning instance.
	// +optional
	InstanceType string `json:"instanceType,omitempty" protobuf:"bytes,5,opt,name=instanceType"`
	// RBACStatus lists what of the roles could not be applied.
	// +optional
	RBACStatus *RBACStatus `json:"rbacStatus,omitempty" protobuf:"bytes,6,opt,name=rbacStatus"`
	// Conditions: one per component, then AsRequested (whether the cluster is all
	// that its spec asks for, and what it is not), then Ready.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,7,rep,name=conditions"`
	// Endpoints are the whole URLs of the cluster's services: service (what the
	// others begin with), messages, admin, topics and registry. They follow
	// the server's base URL, or the address that it listens on. With the stream
	// protocol there is also stream: the servers that its clients begin with.
	// +optional
	// +listType=atomic
	Endpoints []ClusterEndpoint `json:"endpoints,omitempty" protobuf:"bytes,8,rep,name=endpoints"`
	// Shards of the cluster in a group of members, by number. A server that is alone
	// has none.
	// +optional
	// +listType=map
	// +listMapKey=number
	Shards []ShardStatus `json:"shards,omitempty" protobuf:"bytes,9,rep,name=shards"`
}

// ShardStatus is a part of a cluster's topics that one member owns at a time.
type ShardStatus struct {
	// Number of the shard, from 0.
	Number int32 `json:"number" protobuf:"varint,1,opt,name=number"`
	// Owner is the member that serves the shard; empty while there is none.
	// +optional
	Owner string `json:"owner,omitempty" protobuf:"bytes,2,opt,name=owner"`
	// Epoch counts the ownerships of the shard.
	// +optional
	Epoch int64 `json:"epoch,omitempty" protobuf:"varint,3,opt,name=epoch"`
	// Copies of the shard, that of the owner included.
	// +optional
	// +listType=map
	// +listMapKey=member
	Copies []ShardCopy `json:"copies,omitempty" protobuf:"bytes,4,rep,name=copies"`
}

// ShardCopy is the copy of a shard that a member has.
type ShardCopy struct {
	// Member that has the copy.
	Member string `json:"member" protobuf:"bytes,1,opt,name=member"`
	// Live says whether the member is there.
	Live bool `json:"live" protobuf:"varint,2,opt,name=live"`
	// Lag is how many entries of the shard's log the copy is behind, rounded down to
	// a thousand times a power of two: 0 is less than a thousand, which is usual
	// while messages are produced.
	// +optional
	Lag int64 `json:"lag,omitempty" protobuf:"varint,3,opt,name=lag"`
	// Problem says why the copy cannot be used; empty when it can.
	// +optional
	Problem string `json:"problem,omitempty" protobuf:"bytes,4,opt,name=problem"`
}

// ClusterEndpoint is where a service of a cluster answers: at the cluster's own
// name, and beneath the server's address.
type ClusterEndpoint struct {
	// Type is service, messages, admin, topics, registry or stream.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// URL at the cluster's own name.
	URL string `json:"url" protobuf:"bytes,2,opt,name=url"`
	// PathURL is the same at the server's address, which needs no DNS name of
	// the cluster's own.
	PathURL string `json:"pathURL" protobuf:"bytes,3,opt,name=pathURL"`
}

// The types of a cluster's endpoints.
const (
	EndpointService  = "service"  // what all the others begin with
	EndpointMessages = "messages" // produce, consume, acknowledge
	EndpointAdmin    = "admin"    // tenants, namespaces, topics, subscriptions
	EndpointTopics   = "topics"   // the list of topics
	EndpointRegistry = "registry" // the schema registry
	EndpointStream   = "stream"   // Kafka clients
)

// ComponentStatus counts the replicas of a component.
type ComponentStatus struct {
	// Replicas that exist.
	Replicas int32 `json:"replicas" protobuf:"varint,1,opt,name=replicas"`
	// ReadyReplicas that serve.
	ReadyReplicas int32 `json:"readyReplicas" protobuf:"varint,2,opt,name=readyReplicas"`
	// UpdatedReplicas that run the newest spec.
	UpdatedReplicas int32 `json:"updatedReplicas" protobuf:"varint,3,opt,name=updatedReplicas"`
}

// RBACStatus lists what of the roles could not be applied.
type RBACStatus struct {
	// FailedRoles that could not be applied.
	// +optional
	// +listType=atomic
	FailedRoles []string `json:"failedRoles,omitempty" protobuf:"bytes,1,rep,name=failedRoles"`
	// FailedClusterRoles that could not be applied.
	// +optional
	// +listType=atomic
	FailedClusterRoles []string `json:"failedClusterRoles,omitempty" protobuf:"bytes,2,rep,name=failedClusterRoles"`
	// FailedRoleBindings that could not be applied.
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
