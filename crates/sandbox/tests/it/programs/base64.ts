export const main = () => new Uint8Array([1, 2, 255]).toBase64();
