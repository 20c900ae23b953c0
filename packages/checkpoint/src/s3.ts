/** `@opt/checkpoint/s3`: checkpoints in S3 and in what speaks its language. */
export { type S3Credentials, type S3Options, s3FileSystem } from "./stores/s3";
