-- Shows the decisions of Transom's TCP as fields in Wireshark and tshark.
--
-- Transom writes them into comments of packets: `transom get --pcap FILE --pcap-comments`, `capture-comments` in a scenario, and `transom log
-- convert`. This script reads both forms of comment, words such as `cwnd=14480` and records in JSON. It makes a tree of fields, which filters,
-- columns and graphs can use: `transom.limited_by == "cwnd"`, `transom.cwnd < 20000`, `transom.event == "lost"`.
--
-- The package installs it where Wireshark looks for plugins. Elsewhere: tshark -X lua_script:transom.lua -r FILE

local transom = Proto("transom", "Transom")

local BYTES = { "cwnd", "ssthresh", "in_flight", "snd_wnd", "rcv_wnd", "bytes" }
local NUMBERS = { "seq", "connection", "snd_una", "rcv_nxt", "start" }
local MICROSECONDS = { "srtt", "rto", "rtt" }
local WORDS = { "event", "state", "phase", "limited_by", "limited_because", "variable", "layer", "cause" }

local fields = transom.fields
local known = {}

local function add(name, field, is_word)
    fields[name] = field
    known[name] = { field = field, is_word = is_word }
end

for _, name in ipairs(BYTES) do add(name, ProtoField.uint64("transom." .. name, name .. " (bytes)")) end
for _, name in ipairs(NUMBERS) do add(name, ProtoField.uint64("transom." .. name, name)) end
for _, name in ipairs(MICROSECONDS) do add(name, ProtoField.uint64("transom." .. name .. "_us", name .. " (microseconds)")) end
for _, name in ipairs(WORDS) do add(name, ProtoField.string("transom." .. name, name), true) end
fields.retransmission = ProtoField.bool("transom.retransmission", "retransmission")
fields.limited = ProtoField.string("transom.limited", "limited by an extension")

local comments = Field.new("frame.comment")

-- Adds a value, if it is one of a known name. Values come from a file that anybody may have written.
local function show(tree, name, value)
    name = name:gsub("_us$", "")
    local found = known[name]
    if not found or value == "" then return end
    if found.is_word then
        tree:add(found.field, value)
        return
    end
    local digits = value:match("^(%d+)$") or value:match("^(%d+)us$")
    if digits and #digits <= 15 then tree:add(found.field, UInt64(tonumber(digits))) end
end

local function show_words(tree, comment)
    for word in comment:gmatch("%S+") do
        local name, value = word:match("^([%a_]+)=(.*)$")
        if name then
            show(tree, name, value)
        elseif word == "retransmission" then
            tree:add(fields.retransmission, true)
        elseif word:find(":=", 1, true) then
            -- The value in use, and the layer that decided: cwnd:=5792(nice)
            tree:add(fields.limited, word)
        end
    end
end

local function show_record(tree, record)
    local branch = tree:add(transom, "record")
    for name, value in record:gmatch('"([%a_]+)":"([^"]*)"') do show(branch, name, value) end
    for name, value in record:gmatch('"([%a_]+)":(%d+)') do show(branch, name, value) end
    branch:set_text("record: " .. (record:match('"event":"([^"]*)"') or ""))
end

function transom.dissector(buffer, packet, tree)
    local of_packet = { comments() }
    if #of_packet == 0 then return end
    local branch
    for _, comment in ipairs(of_packet) do
        local text = comment.value
        local is_ours = text:find("limited_by", 1, true)
        if is_ours then
            branch = branch or tree:add(transom, "Transom")
            if text:sub(1, 1) == "{" then
                for record in text:gmatch("[^\n]+") do show_record(branch, record) end
            else
                show_words(branch, text)
            end
        end
    end
end

-- After all others, so that the comments of a packet are there.
register_postdissector(transom)
