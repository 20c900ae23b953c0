/** The row programs of the workspace, those of core's ops and those of tests: kernel builds find them in their folders. */
import { readdirSync } from "node:fs";
import type { RowProgram } from "@opt/core/backend";

const FOLDERS = ["../../core/src/rule/row-programs/", "./row-programs/"];

/** What the files of these folders export. */
export async function workspaceRowPrograms(): Promise<RowProgram[]> {
  const files = FOLDERS.map((folder) => new URL(folder, import.meta.url)).flatMap((folder) =>
    readdirSync(folder)
      .sort()
      .map((file) => new URL(file, folder).href),
  );
  const modules: object[] = await Promise.all(files.map((file) => import(/* @vite-ignore */ file)));
  return modules.flatMap((module) => Object.values(module) as RowProgram[]);
}
