/** Takes the pictures of the gallery from the built site: each demo after a while of training. */
import { join } from "node:path";
import { executablePath, launchBrowser, openPage } from "@opt/testkit/browser";
import { serve } from "../docs/serve.mjs";

/** A demo's page, what shows that it has gone far enough, and what is taken. */
const DEMOS = [
  ["race", "optimizer-race", /Step [5-9]\d\d of/, ".picture"],
  ["spirals", "spirals", /step [4-6]\d\d/, ".picture"],
  ["same-run", "same-run", /(1[2-9]|20) steps/, ".lines"],
] as const;

export async function photographDemos(site: string, folder: string): Promise<void> {
  if (executablePath === undefined) throw new Error("[pictures] Chromium is missing. Install it, or set OPT_CHROMIUM.");
  const [browser, { address, close }] = await Promise.all([launchBrowser({ webgpu: false }), serve(site)]);
  try {
    for (const [name, path, ready, part] of DEMOS) {
      const page = await openPage(browser, { viewport: { width: 520, height: 900 } });
      await page.goto(`${address}demos/${path}`);
      if (name !== "spirals") await page.getByRole("button", { name: "Start" }).click();
      await page.getByText(ready).first().waitFor();
      await page
        .locator(part)
        .first()
        .screenshot({ path: join(folder, `demo-${name}.png`) });
      await page.close();
    }
  } finally {
    await browser.close();
    close();
  }
}
