/** A folder of a model: on this machine, behind an address, or in a store. */

import type { FileSystem, OpenFolderOptions } from "@opt/checkpoint";
import { check, OptError, type Tensor } from "@opt/core";

/** For `checkOptions`: those of `OpenFolderOptions`. */
export const OPENING = {
  cache: ["boolean", "string"],
  cacheLimit: "number",
  token: "string",
  endpoint: "string",
  signal: "any",
  fileSystem: "any",
} as const;

export class Place {
  /** What was read by `text`. */
  readonly texts: Record<string, string> = {};

  private constructor(
    private readonly path: string,
    readonly fileSystem: FileSystem,
  ) {}

  static async open(path: string, options: OpenFolderOptions): Promise<Place> {
    const { openFolder } = await import("@opt/checkpoint");
    const found = await openFolder(path, options);
    return new Place(found.path, found.fileSystem);
  }

  under(name: string): string {
    return `${this.path.replace(/\/$/, "")}/${name}`;
  }

  async has(name: string): Promise<boolean> {
    // Web servers list no folders: their stores throw for what is not there.
    const kind = await this.fileSystem.kind(this.under(name)).catch((error: OptError) => {
      if (error.code !== "MISSING") throw error;
    });
    return kind === "file";
  }

  /** @throws OptError MISSING, IO */
  async text(name: string): Promise<string> {
    const path = this.under(name);
    check(await this.has(name), "MISSING", path, () => "the folder must have this file.", "Look at the path.");
    const file = await this.fileSystem.open(path, "read");
    try {
      const bytes = new Uint8Array(await file.size());
      await file.read(bytes, 0);
      this.texts[name] = new TextDecoder().decode(bytes);
      return this.texts[name];
    } finally {
      await file.close();
    }
  }

  /** @throws OptError MISSING, IO, CORRUPT for what is not JSON */
  async json<T>(name: string): Promise<T> {
    const text = await this.text(name);
    try {
      return JSON.parse(text) as T;
    } catch (error) {
      const problem = `the file must be JSON: ${(error as Error).message}.`;
      throw new OptError("CORRUPT", this.under(name), problem, "Fetch it again.");
    }
  }

  /** Tensors, then texts and JSON. @throws OptError DUPLICATE for tensors that are there without `overwrite`; IO */
  async write(weights: string, tensors: Record<string, Tensor>, files: Record<string, unknown>, overwrite = false) {
    const { saveWeights } = await import("@opt/checkpoint");
    const { fileSystem } = this;
    await fileSystem.makeFolder(this.path);
    await saveWeights(this.under(weights), tensors, { overwrite, fileSystem });
    for (const [name, each] of Object.entries(files)) {
      const bytes = new TextEncoder().encode(typeof each === "string" ? each : `${JSON.stringify(each, null, 2)}\n`);
      const file = await fileSystem.open(this.under(name), "create", bytes.length);
      try {
        await file.write(bytes, 0);
        await file.finish();
      } finally {
        await file.close();
      }
    }
  }
}
