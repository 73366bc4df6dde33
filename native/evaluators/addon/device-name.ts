/** Returns our name of a device, from ggml's name of its backend: `cpu`, `cuda`, `metal` or `vulkan`. */
export function deviceName(backend: string): string {
  const name = backend.toLowerCase();
  return name === 'mtl' ? 'metal' : name;
}
