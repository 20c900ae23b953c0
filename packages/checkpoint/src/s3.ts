/** `@opt/checkpoint/s3`: checkpoints in S3 and in what speaks its language. */
export type { S3Credentials, S3Options } from "./bucket/options";
export { s3FileSystem } from "./bucket/s3";
