/** The site of the documentation: it builds without a warning, its links lead somewhere, and it is accessible. */
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { accessibilityOf, executablePath, launchBrowser, openPage } from "@opt/testkit/browser";
import { Application, Logger, LogLevel } from "typedoc";
import { beforeAll, describe, expect, it } from "vitest";

const docs = fileURLToPath(new URL("../../docs/", import.meta.url));
const out = mkdtempSync(join(tmpdir(), "opt-site-"));
let pages: string[];

/** Keeps what typedoc warns of, for the message of a failure. */
class Complaints extends Logger {
  readonly heard: string[] = [];
  override log(message: string, level: LogLevel) {
    if (level >= LogLevel.Warn) this.heard.push(message);
  }
}

beforeAll(async () => {
  const app = await Application.bootstrapWithPlugins({ options: join(docs, "typedoc.json"), logLevel: "Warn" });
  const complaints = new Complaints();
  app.logger = complaints;
  const project = await app.convert();
  if (project === undefined) throw new Error("typedoc cannot read the sources");
  app.validate(project);
  await app.generateDocs(project, out);
  expect(complaints.heard).toEqual([]);
  pages = readdirSync(out, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".html"));
});

/** Where a link of a page leads, if that is a file of the site. */
function targetOf(page: string, href: string): { file: string; anchor: string } | undefined {
  if (/^(?:[a-z]+:|\/\/)/i.test(href)) return undefined;
  const [path, anchor = ""] = href.split("#") as [string, string?];
  const file = path === "" ? page : relative(out, resolve(out, dirname(page), decodeURIComponent(path)));
  return { file, anchor: decodeURIComponent(anchor) };
}

describe("the site", () => {
  it("has every page and the reference", () => {
    const written = ["tutorials", "guides"].flatMap((room) => readdirSync(join(docs, room)));
    expect(pages.filter((page) => page.startsWith("documents/"))).toHaveLength(written.length);
    expect(pages).toContain("modules/_opt_core.html");
  });

  it("has no link that leads nowhere", () => {
    const text = new Map(pages.map((page) => [page, readFileSync(join(out, page), "utf8")]));
    const broken: string[] = [];
    for (const [page, html] of text) {
      for (const [, href] of html.matchAll(/<a [^>]*href="([^"]*)"/g)) {
        const target = targetOf(page, href!.replaceAll("&amp;", "&"));
        if (target === undefined) continue;
        const there = text.get(target.file);
        const found = there !== undefined && (target.anchor === "" || there.includes(`id="${target.anchor}"`));
        if (!found) broken.push(`${page} -> ${href}`);
      }
    }
    expect(text.size).toBeGreaterThan(100);
    expect([...new Set(broken)]).toEqual([]);
  });

  it("is accessible", async ({ skip }) => {
    if (executablePath === undefined) skip("no Chromium is installed");
    const browser = await launchBrowser({ webgpu: false });
    try {
      for (const name of [
        "index.html",
        "modules/_opt_core.html",
        "documents/Errors.html",
        "documents/A_first_model.html",
      ]) {
        const page = await openPage(browser);
        await page.goto(pathToFileURL(join(out, name)).href);
        const { score, violations } = await accessibilityOf(page);
        expect.soft(score, `${name}: ${violations.join("\n")}`).toBeGreaterThanOrEqual(95);
        await page.close();
      }
    } finally {
      await browser.close();
    }
  });
});
