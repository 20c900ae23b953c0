import type { FileSystem } from "../../stores/file-system";

/** What every writer of another system's files takes. */
export interface ExportOptions {
  /** Most bytes of buffers, 64 MiB without it. */
  readonly maxMemory?: number;
  /** Called with the bytes of each piece that was passed on. */
  readonly progress?: (bytes: number) => void;
  readonly fileSystem?: FileSystem;
}
