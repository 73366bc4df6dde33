/** The modes of files and folders that only their owner can reach. */
export const OWNER_ONLY_FILE = 0o600;
export const OWNER_ONLY_DIRECTORY = 0o700;

/** The mode bits that let the group and all others write. */
export const OTHERS_WRITE = 0o022;

/** The id of the superuser. */
export const ROOT_USER_ID = 0;
