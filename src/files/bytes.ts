/** The bytes of a megabyte, as disks and operators count it. */
export const BYTES_PER_MEGABYTE = 1_000_000;
