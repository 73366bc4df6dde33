/** The device to compute on: the best one, a GPU by name, or the CPU only (false). */
export const GPUS = ['auto', 'cuda', 'metal', 'vulkan', false] as const;
export type Gpu = (typeof GPUS)[number];
