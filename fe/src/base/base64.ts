// Decoding of bulk columns, which the server sends as little-endian arrays in base64.

export function decodeBytes(base64: string): ArrayBuffer {
  const text = atob(base64);
  const array = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    array[i] = text.charCodeAt(i);
  }
  return array.buffer;
}

export const decodeFloats = (base64: string): Float64Array => new Float64Array(decodeBytes(base64));
