package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// APIKey is a long-lived credential of a service account. The client creates an RSA key pair and
// sends the public key. The service encrypts the token with it (JWE), so only the holder of the
// private key can read the token. Set spec.revoke to true to revoke the key. The revocation is in
// force when the call returns.
type APIKey struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec describes the key. Only description and revoke can be changed.
	// +optional
	Spec APIKeySpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status APIKeyStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// Conditions of an API key, in the order of the status.
const (
	ConditionIssued  = "Issued"
	ConditionExpired = "Expired"
	ConditionRevoked = "Revoked"
)

// APIKeySpec describes an API key.
type APIKeySpec struct {
	// InstanceName is the instance for which the key is valid. If it is empty, the key is valid for
	// the whole organization, including the resource API. Cannot be changed.
	// +optional
	InstanceName string `json:"instanceName,omitempty" protobuf:"bytes,1,opt,name=instanceName"`
	// ServiceAccountName is the service account of the key. Cannot be changed.
	ServiceAccountName string `json:"serviceAccountName" protobuf:"bytes,2,opt,name=serviceAccountName"`
	// Description is a text for users, at most 1024 characters.
	// +optional
	Description string `json:"description,omitempty" protobuf:"bytes,3,opt,name=description"`
	// ExpirationTime is the time at which the key expires. Without it the key never expires. Cannot
	// be changed.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty" protobuf:"bytes,4,opt,name=expirationTime"`
	// EncryptionKey is the public key that encrypts the token. Without it the plain token is in the
	// response to the create call, once, and is never stored. Cannot be changed.
	// +optional
	EncryptionKey *EncryptionKey `json:"encryptionKey,omitempty" protobuf:"bytes,5,opt,name=encryptionKey"`
	// Revoke revokes the key if it is true. A revocation cannot be undone.
	// +optional
	Revoke bool `json:"revoke,omitempty" protobuf:"varint,6,opt,name=revoke"`
	// CustomizedMetadata is copied into the claim metadata of the token. It has at most 32 entries
	// and 4 KiB. Cannot be changed.
	// +optional
	CustomizedMetadata map[string]string `json:"customizedMetadata,omitempty" protobuf:"bytes,7,rep,name=customizedMetadata"`
}

// EncryptionKey is an RSA public key of 2048 to 8192 bits, as either pem or jwk.
type EncryptionKey struct {
	// PEM is a PEM-encoded public key: SPKI (BEGIN PUBLIC KEY) or PKCS #1 (BEGIN RSA PUBLIC KEY).
	// +optional
	PEM string `json:"pem,omitempty" protobuf:"bytes,1,opt,name=pem"`
	// JWK is a JSON Web Key.
	// +optional
	JWK string `json:"jwk,omitempty" protobuf:"bytes,2,opt,name=jwk"`
}

// APIKeyStatus is the state of an API key.
type APIKeyStatus struct {
	// KeyID identifies the key in audit records and metrics.
	// +optional
	KeyID string `json:"keyId,omitempty" protobuf:"bytes,1,opt,name=keyId"`
	// IssuedAt is the time at which the token was issued.
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty" protobuf:"bytes,2,opt,name=issuedAt"`
	// ExpiresAt is the time at which the token expires. It is absent if the token never expires.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty" protobuf:"bytes,3,opt,name=expiresAt"`
	// RevokedAt is the time at which the key was revoked.
	// +optional
	RevokedAt *metav1.Time `json:"revokedAt,omitempty" protobuf:"bytes,4,opt,name=revokedAt"`
	// Token is the plain token. It is only in the response to a create call without an encryption
	// key, and is never stored.
	// +optional
	Token string `json:"token,omitempty" protobuf:"bytes,5,opt,name=token"`
	// EncryptedToken is the token, encrypted with spec.encryptionKey.
	// +optional
	EncryptedToken *EncryptedToken `json:"encryptedToken,omitempty" protobuf:"bytes,6,opt,name=encryptedToken"`
	// TokenHash is the SHA-256 hash of the token in hexadecimal. It identifies the token, but is
	// not a credential.
	// +optional
	TokenHash string `json:"tokenHash,omitempty" protobuf:"bytes,8,opt,name=tokenHash"`
	// Conditions are Issued, Expired and Revoked, in this order.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,7,rep,name=conditions"`
}

// EncryptedToken holds an encrypted token.
type EncryptedToken struct {
	// JWE is the token in compact serialization (RFC 7516), encrypted with RSA-OAEP and A256GCM.
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
