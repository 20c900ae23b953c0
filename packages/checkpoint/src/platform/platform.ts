/** What Node and browsers do differently. `#platform` is one or the other, chosen by the conditions of package.json. */
import type { FileSystem } from "../stores/file-system";

/** A hash taken piece by piece. */
interface Hash {
  update(bytes: Uint8Array): void;
  /** In hexadecimal digits, at the end. */
  digest(): string;
}

/** A thread that runs `code`, a script of the platform. */
export type StartThread = (code: string, data: unknown, handlers: ThreadHandlers) => void;

interface ThreadHandlers {
  message(reply: unknown): void;
  error(error: Error): void;
  exit(code: number): void;
}

export interface ThreadCopies {
  copy(bytes: Uint8Array): Uint8Array;
  /** No thread needs any of the copies any more. */
  free(): void;
}

/** A request over HTTP. */
export interface HttpRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Takes the body of an answer that is no rejection, so that no second memory is needed for it. */
  readonly into?: Uint8Array;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  header(name: string): string | undefined;
  readonly body: Uint8Array;
}

export interface Platform {
  readonly fileSystem: FileSystem;
  /** CRC-32 of zlib and zip; `before` is that of the bytes before these. */
  crc32(bytes: Uint8Array, before?: number): number;
  sha256(): Promise<Hash>;
  sha256Of(bytes: Uint8Array): Promise<string>;
  /** Rejects where no whole answer comes; with the signal's reason where that ends it. */
  request(url: URL, request: HttpRequest): Promise<HttpAnswer>;
  sameBytes(a: Uint8Array, b: Uint8Array): boolean;
  /** New memory, zeros; where the disk takes whole pages of it (`PAGE`) from where they lie, it begins with one. */
  pages(bytes: number): Uint8Array;
  /** Memory that other threads see, where there are any. */
  threadCopies(): ThreadCopies;
  /** Undefined where nothing is written by other threads. */
  readonly startThread: StartThread | undefined;
  /** `<host>.<kernel>.<process id>.<start>`: letters, digits and `-` between the dots, the kernel 12 hexadecimal digits. */
  thisProcess(): string;
  readonly threadId: number;
  /** Whether a process still runs, as far as it can be seen from here. */
  processLife(kernel: string, pid: number, start: string): "alive" | "dead" | "unknown";
}
