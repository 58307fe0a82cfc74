import { describe, expect, it } from 'vitest';
import { maskKnown, maskSecrets, secretsIn } from '../../src/report/index.ts';

describe('maskSecrets', () => {
  it.each<[string[], string[]]>([
    [
      ['--hub_token', 'abc'],
      ['--hub_token', '***'],
    ],
    [
      ['--hub-token=abc', '-x'],
      ['--hub-token=***', '-x'],
    ],
    [
      ['--wandb_api_key', '0123', '--epochs', '3'],
      ['--wandb_api_key', '***', '--epochs', '3'],
    ],
    [
      ['--db-password', 'hunter2'],
      ['--db-password', '***'],
    ],
    [['--client_secret=s'], ['--client_secret=***']],
    [
      ['--push_to_hub', '--hub_token', 'abc'],
      ['--push_to_hub', '--hub_token', '***'],
    ],
    [
      ['HF_TOKEN=abc', 'python', 't.py'],
      ['HF_TOKEN=***', 'python', 't.py'],
    ],
    [
      ['-c', 'login hf_zxcvbnmasdfghjkl'],
      ['-c', 'login ***'],
    ],
    [
      ['bash', '-c', 'train --hub_token abc --lr 1'],
      ['bash', '-c', 'train --hub_token *** --lr 1'],
    ],
  ])('argv %j', (argv, expected) => expect(maskSecrets(argv)).toEqual(expected));

  it.each<[string[]]>([
    [['--eos_token', '<|im_end|>']],
    [['--pad_token=<pad>']],
    [['--max_new_tokens', '256']],
    [['--tokenizer_name', 'acme/tok']],
    [['--input_key', 'question']],
    [['--dataset_text_field', 'text']],
    [['--hub_token', '--push_to_hub']],
    [['--use_auth_token', 'true']],
    [['--hub_token', '$HF_TOKEN']],
    [['--output_dir', 'hf_models/short']],
    [['--run_name', 'sk-small']],
    [['--dataset', 'keyboard=true']],
  ])('leaves %j', (argv) => expect(maskSecrets(argv)).toEqual(argv));

  it('masks variables by name and by shape', () => {
    expect(
      maskSecrets({
        WANDB_API_KEY: 'abcd',
        HF_TOKEN: 'hf_x',
        AWS_SECRET_ACCESS_KEY: 'zz',
        NOTE: 'use hf_zxcvbnmasdfghjkl here',
        TOKENIZERS_PARALLELISM: 'false',
        CUDA_VISIBLE_DEVICES: '0',
        GONE: undefined,
      }),
    ).toEqual({
      WANDB_API_KEY: '***',
      HF_TOKEN: '***',
      AWS_SECRET_ACCESS_KEY: '***',
      NOTE: 'use *** here',
      TOKENIZERS_PARALLELISM: 'false',
      CUDA_VISIBLE_DEVICES: '0',
    });
  });

  it.each([
    ['hub_token: abc', 'hub_token: ***'],
    ['  "api_key": "a b c",', '  "api_key": "***",'],
    ["password = 'x y'", "password = '***'"],
    ['https://me:pw12@host/x', 'https://me:***@host/x'],
    ['Authorization: Bearer abcdefghijkl', 'Authorization: Bearer ***'],
    ['wandb login 0123456789abcdef0123456789abcdef01234567', 'wandb login ***'],
    ['sk-abcdefghijklmnopqrst', '***'],
    ['- hub_token: abc\n  db_password: correct horse', '- hub_token: ***\n  db_password: *** horse'],
    ['logged in with api_key: x1y2z3 at noon', 'logged in with api_key: *** at noon'],
    ['POST /v1?api_key=abcdef', 'POST /v1?api_key=***'],
  ])('text %s', (text, expected) => expect(maskSecrets(text)).toBe(expected));

  it.each([
    'eos_token: <|endoftext|>',
    'revision: 0123456789abcdef0123456789abcdef01234567',
    'the secret is out',
    'hub_token:',
    'https://example.org:8080/path',
    'token_key_map_of_text: 1',
    'hub_token: null',
    'model     acme/secret-9b: architecture not known',
    'secret-9b was read from acme/secret-9b: not known',
    'what the tokenizer calls a token: see its page',
  ])('leaves text %s', (text) => expect(maskSecrets(text)).toBe(text));
});

describe('maskKnown', () => {
  it('takes values known from names out of any text, to any depth', () => {
    const secrets = secretsIn(['train', '--hub_token', 'tok-11aa', 'DB_PASSWORD=hunter22', '--lr', '0.000125'], {
      WANDB_API_KEY: 'feedbeef01',
      QUEUE: 'amqp://bee:honeypot@queue/1',
      HOME: '/home/bee',
      SHORT_TOKEN: 'abc',
    });
    expect(maskKnown({ tail: ['using feedbeef01 and tok-11aa', 'hunter22/honeypot'], rank: 3 }, secrets)).toEqual({
      tail: ['using *** and ***', '***/***'],
      rank: 3,
    });
    // Names that say nothing and values too short to be told from chance.
    const plainText = 'abc at /home/bee with 0.000125';
    expect(maskKnown(plainText, secrets)).toBe(plainText);
    expect(maskKnown([null, 'hf_zxcvbnmasdfghjkl'], [])).toEqual([null, '***']);
  });
});
