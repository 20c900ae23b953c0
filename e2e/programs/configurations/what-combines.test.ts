/** The page says what the configurations try. `OPT_WRITE_DOCS=1` writes its tables anew. */
import { readFileSync, writeFileSync } from "node:fs";
import { pageOf } from "@opt/testkit/configurations";
import { expect, it } from "vitest";
import { drawnOn } from "./campaign";

const PAGE = new URL("../../../docs/guides/what-combines.md", import.meta.url);

it("what-combines.md has the table of configurations", async () => {
  const { optimizers } = await drawnOn([]);
  const page = readFileSync(PAGE, "utf8");
  const [introduction] = page.split("\n| ") as [string];
  const written = `${introduction.trimEnd()}\n\n${pageOf(optimizers)}\n`;
  if (process.env.OPT_WRITE_DOCS) writeFileSync(PAGE, written);
  else expect(page, "OPT_WRITE_DOCS=1 npm run unit -- e2e/programs/configurations/what-combines").toBe(written);
});
