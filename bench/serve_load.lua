-- Load for wrk: each connection asks up to five times a second, one time in forty for an answer, one
-- in forty for tokens, else for what costs little.
--
--   wrk -t 1 -c 200 -d 600s --latency -s bench/serve_load.lua http://127.0.0.1:8080
local count = 0
local chat = '{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}'
local json = {["Content-Type"] = "application/json"}

function delay()
  return 200 -- Milliseconds, before each request.
end

function request()
  count = count + 1
  if count % 40 == 0 then
    return wrk.format("POST", "/v1/chat/completions", json, chat)
  elseif count % 40 == 20 then
    return wrk.format("POST", "/tokenize", json, '{"content": "Hello, world"}')
  elseif count % 2 == 0 then
    return wrk.format("GET", "/v1/models")
  end
  return wrk.format("GET", "/health")
end
