package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// APIKey is a long-lived credential of a service account. The client makes an
// RSA key pair and submits the public half; the service answers with the token
// encrypted to it (a JWE), so only the holder of the private half can read it.
// Set spec.revoke to true to revoke the key: it is dead when the call returns.
type APIKey struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is what the key is for. Only description and revoke can be changed.
	// +optional
	Spec APIKeySpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status APIKeyStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// Conditions of an API key, in this order.
const (
	ConditionIssued  = "Issued"
	ConditionExpired = "Expired"
	ConditionRevoked = "Revoked"
)

// APIKeySpec is what the key is for.
type APIKeySpec struct {
	// InstanceName is the instance the key is good for; empty means the whole
	// organization, the resource API included. Cannot be changed.
	// +optional
	InstanceName string `json:"instanceName,omitempty" protobuf:"bytes,1,opt,name=instanceName"`
	// ServiceAccountName is the account the key belongs to. Cannot be changed.
	ServiceAccountName string `json:"serviceAccountName" protobuf:"bytes,2,opt,name=serviceAccountName"`
	// Description for people.
	// +optional
	Description string `json:"description,omitempty" protobuf:"bytes,3,opt,name=description"`
	// ExpirationTime is when the key ends; it never does when left out. Cannot
	// be changed.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty" protobuf:"bytes,4,opt,name=expirationTime"`
	// EncryptionKey is the public key the token is encrypted to. Without one the
	// token appears in the answer to the create call, once, and is never stored.
	// Cannot be changed.
	// +optional
	EncryptionKey *EncryptionKey `json:"encryptionKey,omitempty" protobuf:"bytes,5,opt,name=encryptionKey"`
	// Revoke ends the key at once when set to true; there is no way back.
	// +optional
	Revoke bool `json:"revoke,omitempty" protobuf:"varint,6,opt,name=revoke"`
	// CustomizedMetadata is copied into the token's claims.
	// +optional
	CustomizedMetadata map[string]string `json:"customizedMetadata,omitempty" protobuf:"bytes,7,rep,name=customizedMetadata"`
}

// EncryptionKey is an RSA public key of at least 2048 bits, in one of two forms.
type EncryptionKey struct {
	// PEM is a PEM-encoded public key (SPKI, BEGIN PUBLIC KEY).
	// +optional
	PEM string `json:"pem,omitempty" protobuf:"bytes,1,opt,name=pem"`
	// JWK is a JSON Web Key.
	// +optional
	JWK string `json:"jwk,omitempty" protobuf:"bytes,2,opt,name=jwk"`
}

// APIKeyStatus is what the service made of the key.
type APIKeyStatus struct {
	// KeyID identifies the key in audit records and metrics.
	// +optional
	KeyID string `json:"keyId,omitempty" protobuf:"bytes,1,opt,name=keyId"`
	// IssuedAt is when the token was made.
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty" protobuf:"bytes,2,opt,name=issuedAt"`
	// ExpiresAt is when the token ends; absent means never.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty" protobuf:"bytes,3,opt,name=expiresAt"`
	// RevokedAt is when the key was revoked.
	// +optional
	RevokedAt *metav1.Time `json:"revokedAt,omitempty" protobuf:"bytes,4,opt,name=revokedAt"`
	// Token is the plain token; only in the answer to a create call without an
	// encryption key, and never stored.
	// +optional
	Token string `json:"token,omitempty" protobuf:"bytes,5,opt,name=token"`
	// EncryptedToken is the token encrypted to spec.encryptionKey.
	// +optional
	EncryptedToken *EncryptedToken `json:"encryptedToken,omitempty" protobuf:"bytes,6,opt,name=encryptedToken"`
	// TokenHash is a SHA-256 of the token: it tells which token the key is, and
	// is of no use as one.
	// +optional
	TokenHash string `json:"tokenHash,omitempty" protobuf:"bytes,8,opt,name=tokenHash"`
	// Conditions: Issued, Expired, Revoked.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,7,rep,name=conditions"`
}

// EncryptedToken holds an encrypted token.
type EncryptedToken struct {
	// JWE in compact form (RFC 7516), RSA-OAEP and A256GCM.
	// +optional
	JWE string `json:"jwe,omitempty" protobuf:"bytes,1,opt,name=jwe"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// APIKeyList is a list of API keys.
type APIKeyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the keys.
	Items []APIKey `json:"items" protobuf:"bytes,2,rep,name=items"`
}
