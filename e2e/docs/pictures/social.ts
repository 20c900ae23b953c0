/** Makes the picture that other sites show beside a link: the logo, the home's words, and what its network has learned. */
import { readFileSync } from "node:fs";
import { openPage } from "@opt/testkit/browser";
import type { Browser } from "playwright-core";

const SIZE = { width: 1200, height: 630 };
const LOOK = `display: grid; grid-template-columns: 1fr 600px; align-items: center; gap: 32px; height: 100vh; padding: 0 56px;
  box-sizing: border-box; background: #fff`;

export async function photographSocial(browser: Browser, address: string, path: string): Promise<void> {
  const page = await openPage(browser, { viewport: SIZE, deviceScaleFactor: 2 });
  await page.goto(address);
  await page
    .getByText(/step [4-6]\d\d/)
    .first()
    .waitFor();
  const map = await page.locator(".spirals .picture").screenshot();
  const [name, text, tagline] = await page.locator(".VPHero :is(.name, .text, .tagline)").allTextContents();
  await page.close();
  const card = await openPage(browser, { viewport: SIZE });
  const logo = readFileSync(new URL("../../../docs/public/logo.svg", import.meta.url), "utf8");
  await card.setContent(`<body style="margin: 0; font-family: sans-serif; color: #1c1c24"><main style="${LOOK}">
    <div><div style="width: 112px">${logo}</div>
    <h1 style="margin: 8px 0; font-size: 88px; color: #1f57b3">${name}</h1>
    <h2 style="margin: 0 0 24px; font-size: 42px">${text}</h2>
    <p style="margin: 0; font-size: 26px; line-height: 1.4; color: #4a4a55">${tagline!.split(". ")[0]}.</p></div>
    <img width="600" src="data:image/png;base64,${map.toString("base64")}"></main>`);
  await card.locator("img").evaluate((image: HTMLImageElement) => image.decode());
  await card.screenshot({ path });
  await card.close();
}
