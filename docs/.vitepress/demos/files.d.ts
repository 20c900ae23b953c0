declare module "*.safetensors" {
  const bytes: Uint8Array;
  export default bytes;
}
declare module "*.jsonl" {
  const text: string;
  export default text;
}
