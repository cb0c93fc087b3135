// Runs the script of a page outside of a browser: `node page.js PAGE < TASKS`, both JSON; see test_page.py.
const fs = require("fs");

const page = fs.readFileSync(process.argv[2], "utf8");
const [, model] = page.match(/<script type="application\/octet-stream" id="model">([^<]*)<\/script>/);
const [, script] = page.match(/<script>([^]*)<\/script>/);
const names = "readPayload, Kernel, Tokenizer, PromptEncoder";
const { readPayload, Kernel, Tokenizer, PromptEncoder } = new Function(`${script}; return { ${names} };`)();

(async () => {
  const payload = await readPayload(model), { header } = payload;
  const tokenizer = new Tokenizer(header.tokenizer), encoder = new PromptEncoder(header, tokenizer);
  let kernel = null;

  const run = {
    header: () => header,
    encode: (text) => tokenizer.encode(text),
    decode: (ids) => tokenizer.decode(ids),
    stream: ([ids, beginsText]) => {
      const stream = tokenizer.stream(beginsText);
      return [...ids.map((id) => [stream.push(id), stream.pending]), [stream.flush(), false]];
    },
    prompt: ([prompt, turns, most]) => encoder.encode(prompt, turns, most),
    source: (prompt) => encoder.encodeSource(prompt),
    probabilities: async ([ids, settings, source]) => {
      kernel ??= await Kernel.load(payload);
      const { logprobs, sampling } = kernel.probabilities({ ids, source, settings });
      return [[...logprobs], [...sampling]];
    },
    answer: async ([prompt, settings, calls, source]) => {
      kernel ??= await Kernel.load(payload);
      const out = [], { ends } = header;
      while (out.length < settings.max_tokens && !ends.includes(out.at(-1)?.id)) {
        const random = { seed: settings.seed, prompt: 1, position: out.length };
        const most = Math.min(calls, settings.max_tokens - out.length), ids = [...prompt, ...out.map((one) => one.id)];
        out.push(...kernel.extend({ ids, source, settings, random, ends, most, seconds: 1 }));
      }
      return out.map(({ id, logprob }) => [id, logprob]);
    },
  };

  const results = [];
  for (const [name, argument] of JSON.parse(fs.readFileSync(0, "utf8"))) results.push(await run[name](argument));
  process.stdout.write(JSON.stringify(results));
})();
