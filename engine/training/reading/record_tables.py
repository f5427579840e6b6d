"""What made-up records are about: their kinds with columns, values and questions, and tasks with steps."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .word_kinds import listed

Random = np.random.Generator
Names = Sequence[str]  # of an article
Value = Callable[[Random, int, Names], str]  # of a table's style, which the values of a column share

# A kind of records begins with its name, how questions name a record, and titles of a table. A line each for
# its columns: names, a noun first, how a value is drawn (of `VALUES`, or one of a list), and questions.
KINDS_OF_RECORDS = """
plan; the {} plan, {}, the plan {}; Plans and prices, Our plans, Pricing
price, cost, fee, rate = fee: How much does {} cost? What is the price of {}? What do you pay for {}?
number of users, users, seats = count: How many users does {} allow? How many seats are included in {}?
storage, disk space = size: How much storage does {} include? What storage comes with {}?
response time, support reply = duration: What is the response time of {}? How fast is support for {}?
trial period, trial = duration: How long is the trial of {}? How long can you try {}?
notice period, cancellation = duration: What is the notice period of {}? How long is the notice for {}?
discount = share: What discount is there on {}? How big is the discount for {}?

product; {}, the {}, the product {}; Product list, Catalogue, Price list, Inventory
price, unit price, list price = money: How much does {} cost? What is the price of {}? What do you pay for {}?
weight = weight: How heavy is {}? What does {} weigh? What is the weight of {}?
warranty, guarantee = duration: How long is the warranty of {}? What warranty does {} have?
release date, released, available from = day: When was {} released? From when is {} available?
height, width = length: What is the {name} of {}?
color, colour = [black, white, dark blue, red, silver, forest green, orange]: What color is {}?
  In what colour does {} come?
stock, in stock, quantity = count: How many of {} are in stock? How many units of {} are left?
manufacturer, supplier = company: Who supplies {}? Who makes {}? Which company is the {name} of {}?
battery life = duration: How long does the battery of {} last?

name; {}; Staff, Employees, Contacts, Team, Who to ask
position, role, job title = [accountant, head of sales, software engineer, office manager, director, nurse,
  project manager, data analyst, receptionist, legal counsel, warehouse lead]: What is the position of {}?
  What is {}'s job? What does {} work as?
department, team, division = [Finance, Human Resources, Research and Development, Sales, Customer Service,
  Legal, Logistics, IT]: In which department does {} work? Which team does {} belong to?
phone number, phone, telephone, tel. = phone: What is the phone number of {}? How can I call {}?
email, e-mail, mail = email: What is the email address of {}? What is {}'s email?
office, room = room: Which room is {} in? Where is the office of {}? Where does {} sit?
start date, joined, hired = day: When did {} start? When was {} hired? When did {} join?
manager, reports to = person: Who is the manager of {}? Who does {} report to?
vacation, days of leave = duration: How much vacation does {} have? How many days off does {} get?
salary = fee: What is the salary of {}? How much does {} earn?

branch; the {}, {}; Opening hours, Our branches, Locations, Visit us
weekday hours, Monday to Friday, weekdays, Mon–Fri = hours: When is {} open on weekdays?
  What are the weekday hours of {}? When does {} open during the week?
Saturday hours, Saturday, Sat = hours: When is {} open on Saturday? What are the Saturday hours of {}?
Sunday hours, Sunday, Sun = hours: When is {} open on Sunday? What are the Sunday hours of {}?
phone number, phone, telephone = phone: What is the phone number of {}? How can {} be reached by phone?
address, street = street: What is the address of {}? In which street is {}?
admission, entrance, ticket = money: What does the entrance to {} cost? How much is admission to {}?
head, director, contact = person: Who runs {}? Who is the head of {}?
opening date, opened, since = day: When did {} open for the first time? Since when does {} exist?

setting; {}, the setting {}, the option {}; Settings, Configuration, Options, Parameters
default, default value = default: What is the default of {}? What is {} set to by default?
maximum, upper limit, largest value = count: What is the maximum of {}? What is the largest value of {}?
minimum, lower limit, smallest value = count: What is the minimum of {}? What is the smallest value of {}?
environment variable, variable = variable: Which environment variable sets {}?
type = [integer, string, boolean, float, list of strings, path]: What type is {}? What is the type of {}?
first version, since, added in = release: Since which version is there {}? In which version was {} added?

version; version {}, {}, release {}; Releases, Release notes, Versions, Support calendar
release date, released = day: When was {} released? When did {} come out?
end of support, supported until, end of life = day: Until when is {} supported? When does support of {} end?
download size, size = size: How large is the download of {}? What is the size of {}?
code name, name = [Aurora, Bobcat, Cedar, Dolphin, Ember, Firefly, Heron]: What is the code name of {}?
maintainer, released by = person: Who maintains {}? Who is responsible for {}?
number of fixes, fixes = count: How many bugs does {} fix? How many fixes are in {}?

expense; a {}, the {}, {}; Travel policy, Limits, What is reimbursed, Expense rules
limit, maximum, up to = money: What is the limit for {}? How much may {} cost at most?
  Up to what amount is {} reimbursed?
approval, approved by = [the team lead, the finance department, the managing director, the head of HR]:
  Who approves {}? Whose approval is needed for {}?
deadline, submit within = duration: Within what time must {} be submitted? What is the deadline for {}?
tax rate, VAT = share: What is the tax rate of {}? How much VAT is on {}?
account, cost centre = account: Which account is {} booked to? What is the cost centre of {}?

year; {}, the year {}, fiscal {}; Key figures, Five-year summary, Annual results, Financial results
revenue, total revenue, sales = millions: What was the total revenue in {}? What were sales in {}?
net income, profit, net profit = millions: What was the net income in {}? How large was the profit in {}?
number of employees, employees, staff = count: How many employees were there in {}?
  How many people worked there in {}?
growth, change = share: How strong was growth in {}? By how much did it grow in {}?
operating margin, margin = share: What was the operating margin in {}?
dividend, dividend per share = money: What was the dividend in {}? How much dividend was paid in {}?
number of visitors, visitors = count: How many visitors came in {}? How many visitors were there in {}?

event; the {}, {}; Programme, Events, Calendar, Workshops
date, day = day: On what day is {}? On what date does {} take place? What is the date of {}?
starting time, begins at, time = clock: At what time does {} begin? What time is {}?
venue, place, location = place: Where is {}? Where does {} take place? What is the venue of {}?
speaker, led by, host = person: Who leads {}? Who speaks at {}? Who is the host of {}?
fee, ticket price, admission = money: How much does {} cost? What is the fee for {}?
registration deadline, register by = day: Until when can one register for {}?
capacity, places = count: How many people can attend {}? How many places are there at {}?

person; {}; Biographies, Members, Winners, Authors
date of birth, born = day: When was {} born? What is the birthday of {}?
place of birth, birthplace, born in = place: Where was {} born? What is {}'s birthplace?
profession, occupation = [painter, physicist, composer, architect, novelist, chemist, explorer, botanist]:
  What was {}'s profession? What did {} do for a living? What was {} by profession?
date of death, died = day: When did {} die? What is the date of {}'s death?
teacher, taught by = person: Who taught {}? Who was {}'s teacher?
award, prize = prize: Which prize did {} win? What award did {} receive?

invoice; invoice {}, {}, order {}; Invoices, Open items, Orders, Payments
amount, total, sum = money: What is the amount of {}? How much is {}? What is the total of {}?
due date, due, payable by = day: When is {} due? By when must {} be paid?
customer, client, billed to = company: Who is the customer of {}? Who was {} sent to?
status = [paid, open, overdue, cancelled, partly paid]: What is the status of {}?
date of issue, issued = day: When was {} issued? On what date was {} written?
contact, clerk = person: Who handles {}? Who is the contact for {}?

medicine; {}; Doses, Medication plan, Dosage
dose, single dose = dose: What is the dose of {}? How much {} is given at once?
interval, every = duration: How often is {} taken? At what interval is {} given?
daily maximum, maximum per day = dose: What is the daily maximum of {}? How much {} may be taken per day?
indication, for = [fever, high blood pressure, headache, allergy, infection, insomnia]: What is {} used for?
  What does {} treat?
side effect, known side effect = [dizziness, nausea, dry mouth, fatigue, rash]: What is a side effect of {}?
storage temperature, store at = [2 to 8 °C, below 25 °C, room temperature, -20 °C]: How is {} stored?
  At what temperature is {} stored?

region; {}; Regions, Statistics, Districts, Cities
population, inhabitants = count: How many people live in {}? What is the population of {}?
area = area: What is the area of {}? How large is the area of {}?
unemployment rate, unemployment = share: What is the unemployment rate in {}?
mayor, governor = person: Who is the {name} of {}?
founding year, founded, established = year: When was {} founded? In what year was {} established?
average income, income = fee: What is the average income in {}?
rainfall, precipitation = rain: How much rain falls in {}? What is the rainfall in {}?

destination; {}; Departures, Timetable, Connections
departure, departs = clock: When does the train to {} leave? What time is the departure to {}?
arrival, arrives = clock: When does the train to {} arrive? What is the arrival time in {}?
platform, track = platform: From which platform does the train to {} leave? What platform is {}?
fare, price = money: How much is a ticket to {}? What is the fare to {}?
travel time, duration = duration: How long is the trip to {}? How long does it take to get to {}?
line, train = line: Which train goes to {}? What line serves {}?
"""
TASKS_WITH_STEPS = """
install the program: Download the installer from the website; Close all other programs; Press Install
  Open the downloaded file; Accept the licence terms; Choose a folder for the program; Enter the serial number
  Restart the computer; Sign in with your account
bake the bread: Mix the flour with the salt; Dissolve the yeast in warm water; Knead the dough for ten minutes
  Let the dough rest for one hour; Shape two loaves; Heat the oven to 230 °C; Bake the loaves for 35 minutes
  Cool the bread on a rack
change the filter: Switch off the pump; Close both valves; Place a bucket below the housing; Unscrew the lid
  Remove the old filter; Clean the seal with a dry cloth; Insert the new filter; Tighten the lid by hand
  Open the valves slowly; Check for leaks
request leave: Ask your team lead for the dates; Open the staff portal; Fill in form HR-12
  Name your substitute; Submit the form two weeks ahead; Wait for the email from Human Resources
  Enter the dates in the calendar
restore a backup: Stop the database server; Mount the backup disk; Copy the newest archive to the spare disk
  Check the archive's checksum; Unpack the archive; Start the server in safe mode; Run the repair tool
  Start the server again; Tell the users that the service is back
leave the building in an emergency: Warn your colleagues; Close the windows; Leave your belongings behind
  Take the nearest staircase; Do not use the lifts; Go to the meeting point in the car park
  Report to the fire warden
return an order: Log in to your account; Open the list of orders; Choose the item; State your reason
  Print the label; Pack the item in its box; Bring the parcel to the post office; Keep the receipt
calibrate the scale: Place the scale on a level surface; Let it warm up for 20 minutes
  Hold the TARE key for three seconds; Wait until CAL is shown; Put the 500 g weight on the plate; Press OK
  Remove the weight; Write the date in the log
plant the tree: Dig a hole of 60 cm; Loosen the soil at the bottom; Water the root ball; Set the tree upright
  Fill the hole with earth; Drive a stake beside the trunk; Tie the trunk to the stake; Water it every evening
"""

# Steps that no task has in common: "Turn the left handle twice".
STEP_VERBS = listed(
    "Open Close Turn Press Lift Clean Mark Count Weigh Fold Loosen Tighten Paint Label Heat Move Cover"
)
STEP_THINGS = (
    "left handle", "upper drawer", "red switch", "main valve", "glass lid", "old cable", "front panel",
    "paper tray", "blue folder", "second shelf", "metal frame", "green lamp", "water tank", "outer ring",
    "wooden box", "back door",
)  # fmt: skip
STEP_ENDS = ("", "", "", " twice", " by hand", " with a dry cloth", " for ten minutes", " at noon")
FIRST = listed(
    "Anna Ben Carla David Elena Farid Grace Hugo Ines Jonas Karim Lena Marco Nadia Oliver Priya Quentin Rosa "
    "Samuel Tara Ulrich Vera William Yusuf Zoe Mei Kofi Aisha Diego Sofia"
)
LAST = listed(
    "Adler Brandt Costa Dubois Eriksen Fischer Garcia Hansen Ito Jensen Kowalski Lopez Meyer Novak Okafor "
    "Patel Rossi Schmidt Tanaka Ueda Vogel Weber Young Zhang Nguyen Silva Keller Moreau Lind Arde"
)
MONTHS = listed("January February March April May June July August September October November December")
GERMAN_MONTHS = listed("Januar Februar März April Mai Juni Juli August September Oktober November Dezember")
INVENTED = listed(
    "Aurora Falcon Summit Harbor Cedar Nova Delta Orion Atlas Ember Willow Granite Comet Meridian Vertex "
    "Lumen Pioneer Quartz Ridge Saffron"
)
TIME_UNITS = listed("seconds minutes hours days weeks months years")
PERIODS = (
    " a month", " per month", "/month", " per user per month", " a year", " per year", " annually", " a week",
    " per person", " per hour", "/year", " per day",
)  # fmt: skip
CURRENCIES = ("${}", "€{}", "£{}", "{} EUR", "{} €", "CHF {}", "US${}", "{} USD")


def draw(rng: Random, found: Sequence[str]) -> str:
    """Draw one of several."""
    return found[int(rng.integers(len(found)))]


def person(rng: Random, style: int, names: Names) -> str:
    """Draw a person's name, in some cases two words of the article that may be one."""
    two = [name for name in names if name.count(" ") == 1 and name.replace(" ", "").isalpha()]
    return draw(rng, two) if two and rng.random() < 0.3 else f"{draw(rng, FIRST)} {draw(rng, LAST)}"


def own_name(rng: Random, style: int, names: Names) -> str:
    """Draw a name of the article, or one that is invented."""
    short = [name for name in names if 3 < len(name) < 25]
    return draw(rng, short) if short and rng.random() < 0.5 else draw(rng, INVENTED)


def place(rng: Random, style: int, names: Names) -> str:
    """Draw a place, in some cases a name of the article."""
    known = listed("Lisbon Oslo Vienna Leeds Denver Kyoto Lyon Porto Tallinn Ghent Tessel Malmo Cork Turin")
    return own_name(rng, style, names) if rng.random() < 0.4 else draw(rng, known)


def company(rng: Random, style: int, names: Names) -> str:
    """Draw a company."""
    return own_name(rng, style, names) + draw(rng, (" Ltd", " GmbH", " Inc.", " & Sons", ""))


def grouped(number: float, style: int, decimals: int = 0) -> str:
    """Write a number: 1,250.00, 1250.00 or 1.250,00."""
    text = f"{number:,.{decimals}f}"
    if style % 7 == 5:
        return text.replace(",", "")
    return text.translate(str.maketrans(",.", ".,")) if style % 7 == 6 else text


def count(rng: Random, style: int, names: Names) -> str:
    """Draw a number."""
    return grouped(int(rng.integers(2, 10 ** int(rng.integers(1, 6)) + 3)), style)


def money(rng: Random, style: int, names: Names) -> str:
    """Draw an amount with its currency, such as $1,250.00 or 49 EUR."""
    number = float(rng.integers(1, 10 ** int(rng.integers(1, 5)) + 5))
    decimals = 2 if style % 3 else 0
    amount = grouped(number + (0.99 if decimals and rng.random() < 0.4 else 0), style // 3, decimals)
    return CURRENCIES[style % 8].format(amount)


def fee(rng: Random, style: int, names: Names) -> str:
    """Draw an amount with its period, such as $1,250.00 a month."""
    return money(rng, style, names) + PERIODS[style % 12]


def millions(rng: Random, style: int, names: Names) -> str:
    """Draw a large amount, such as $3.5 million."""
    word = (" million", " billion", "m", "bn")[style // 4 % 4]
    return ("${}", "€{}", "£{}", "{} USD")[style % 4].format(f"{rng.integers(10, 9999) / 10:,.1f}{word}")


def day(rng: Random, style: int, names: Names) -> str:
    """Draw a date: 3 October 1990, October 3, 1990, 3. Oktober 1990, 1990-10-03 and so on."""
    year, month, of_month = int(rng.integers(1950, 2031)), int(rng.integers(1, 13)), int(rng.integers(1, 29))
    name = MONTHS[month - 1]
    return (
        f"{of_month} {name} {year}",
        f"{name} {of_month}, {year}",
        f"{of_month}. {GERMAN_MONTHS[month - 1]} {year}",
        f"{year}-{month:02}-{of_month:02}",
        f"{of_month:02}/{month:02}/{year}",
        f"{of_month:02}.{month:02}.{year}",
        f"{name[:3]} {of_month}, {year}",
        f"{name} {year}",
        f"{of_month} {name}",
    )[style % 9]


def hours(rng: Random, style: int, names: Names) -> str:
    """Draw opening hours."""
    first, last = int(rng.integers(6, 12)), int(rng.integers(3, 11))
    half = "30" if rng.random() < 0.3 else "00"
    return (
        f"{first}:{half}–{12 + last}:00",
        f"{first}:{half} - {12 + last}:00",
        f"{first} am to {last} pm",
        f"{first}:{half} a.m. to {last}:00 p.m.",
        f"from {first} to {12 + last} h",
        f"{first:02}:{half}-{12 + last}:00",
    )[style % 6]


def clock(rng: Random, style: int, names: Names) -> str:
    """Draw a time of day."""
    hour, minute = int(rng.integers(1, 13)), int(rng.integers(0, 12)) * 5
    return (f"{hour + 11}:{minute:02}", f"{hour}:{minute:02} {draw(rng, ('am', 'pm'))}")[style % 2]


def duration(rng: Random, style: int, names: Names) -> str:
    """Draw a duration, such as 30 days."""
    unit = TIME_UNITS[(style + int(rng.random() < 0.2)) % 7]
    return f"{draw(rng, listed('2 3 5 7 10 14 15 24 30 45 60 90'))} {unit}"


def share(rng: Random, style: int, names: Names) -> str:
    """Draw a percentage."""
    number = f"{rng.integers(1, 999) / 10:.1f}" if style % 2 else f"{rng.integers(1, 100)}"
    return number + ("%", " %", " percent")[style // 2 % 3]


def size(rng: Random, style: int, names: Names) -> str:
    """Draw a size of memory."""
    unit = ("MB", "GB", "TB", "kB")[(style + int(rng.random() < 0.3)) % 4]
    return f"{2 ** int(rng.integers(1, 11))} {unit}"


def measured(units: str) -> Value:
    """Return how a number with one of these units is drawn."""
    found = listed(units)

    def value(rng: Random, style: int, names: Names) -> str:
        return f"{rng.integers(2, 900) / (10 if style % 2 else 1):g} {found[style % len(found)]}"

    return value


def area(rng: Random, style: int, names: Names) -> str:
    """Draw an area."""
    return f"{grouped(int(rng.integers(10, 90000)), style)} {('km²', 'square miles', 'ha')[style % 3]}"


def phone(rng: Random, style: int, names: Names) -> str:
    """Draw a telephone number."""
    a, b, c = int(rng.integers(20, 99)), int(rng.integers(100, 999)), int(rng.integers(1000, 9999))
    return (f"+49 {a} {b}{c}", f"(0{a}) {b}-{c}", f"+1 {b}-555-{c}", f"0{a} {b} {c}")[style % 4]


def email(rng: Random, style: int, names: Names) -> str:
    """Draw an e-mail address."""
    first, last = draw(rng, FIRST).lower(), draw(rng, LAST).lower()
    return f"{(first, first[0])[style % 2]}.{last}@{draw(rng, INVENTED).lower()}.example"


def default(rng: Random, style: int, names: Names) -> str:
    """Draw the value of a setting."""
    number = draw(rng, (duration(rng, style, names), size(rng, style, names), count(rng, 0, names)))
    return draw(rng, (number, number, number, "info", "true", "false", "auto"))


VALUES: dict[str, Value] = {
    "fee": fee, "count": count, "size": size, "duration": duration, "share": share, "money": money,
    "day": day, "company": company, "phone": phone, "email": email, "person": person, "hours": hours,
    "clock": clock, "place": place, "millions": millions, "default": default, "area": area,
    "weight": measured("kg g lbs"),     "length": measured("m cm km mm"), "dose": measured("mg ml g µg"),
    "rain": measured("mm cm inches"),
    "room": lambda rng, style, names: f"{('Room', 'Hall', 'Lab')[style % 3]} {rng.integers(1, 400)}",
    "street": lambda rng, style, names: f"{rng.integers(1, 200)} {draw(rng, LAST)} Street",
    "variable": lambda rng, style, names: f"{draw(rng, INVENTED)}_{draw(rng, MONTHS[:5])}".upper(),
    "release": lambda rng, style, names: f"version {version(rng, style, names)}",
    "account": lambda rng, style, names: f"{rng.integers(1000, 9999)}-{rng.integers(10, 99)}",
    "prize": lambda rng, style, names: f"{own_name(rng, style, names)} Prize",
    "year": lambda rng, style, names: str(rng.integers(800, 1990)),
    "platform": lambda rng, style, names: f"{rng.integers(1, 25)}{draw(rng, ('', '', 'a', 'b'))}",
    "line": lambda rng, style, names: f"{draw(rng, ('IC', 'RE', 'S', 'EC'))} {rng.integers(1, 999)}",
}  # fmt: skip


def version(rng: Random, style: int, names: Names) -> str:
    """Draw a version's number."""
    return f"{rng.integers(0, 12)}.{rng.integers(0, 20)}" + (f".{rng.integers(0, 9)}" if style % 2 else "")


def plan(rng: Random, style: int, names: Names) -> str:
    """Draw the name of a plan."""
    known = listed(
        "Free Basic Starter Standard Plus Pro Team Business Premium Enterprise Student Family Solo"
    )
    return draw(rng, known) + draw(rng, ("", "", "", f" {draw(rng, INVENTED)}"))


SETTING_NAMES = listed(
    "timeout max_retries port cache_size log_level batch_size pool_size interval max_upload session_length "
    "buffer threads page_size rate_limit backup_dir"
)
EXPENSES = (
    "hotel night", "taxi ride", "dinner", "breakfast", "train ticket", "rental car", "laptop", "conference",
    "flight", "parking space", "desk", "training course", "client gift", "phone bill",
)  # fmt: skip
MEDICINES = listed(
    "Avorin Belatol Cardizan Dolerex Enalix Fevanol Glucomed Histalin Ibuxan Kalmin Lorvast Medipram Nexolan"
)
KEYS: dict[str, Value] = {
    "plan": plan, "name": person, "person": person, "version": version, "region": place, "destination": place,
    "product": lambda rng, style, names: f"{own_name(rng, style, names)} X{rng.integers(1, 900)}",
    "branch": lambda rng, style, names: f"{own_name(rng, style, names)} "
    + draw(rng, ("Library", "Museum", "Clinic", "Shop", "Pool", "Office")),
    "setting": lambda rng, style, names: draw(rng, SETTING_NAMES),
    "expense": lambda rng, style, names: draw(rng, EXPENSES),
    "year": lambda rng, style, names: str(rng.integers(1990, 2026)),
    "event": lambda rng, style, names: f"{own_name(rng, style, names)} "
    + draw(rng, ("Workshop", "Festival", "Lecture", "Concert", "Tour")),
    "invoice": lambda rng, style, names: f"{draw(rng, ('INV', 'R', 'PO', 'A'))}-{rng.integers(1000, 99999)}",
    "medicine": lambda rng, style, names: draw(rng, MEDICINES),
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column: its names, how a value is drawn, and questions for it, with {} for the record."""

    names: tuple[str, ...]
    value: Value
    questions: tuple[str, ...]


@dataclass(frozen=True)
class RecordKind:
    """Records of one kind: what one is called, how questions name it, titles of a table, and its columns."""

    thing: str
    forms: tuple[str, ...]
    titles: tuple[str, ...]
    columns: tuple[Column, ...]

    def of_key(self, key: str, rng: Random) -> str:
        """Return a record's key as a question names it."""
        return draw(rng, self.forms).format(key)


def step(rng: Random) -> str:
    """Make up a step."""
    return f"{draw(rng, STEP_VERBS)} the {draw(rng, STEP_THINGS)}{draw(rng, STEP_ENDS)}"


def read_kinds(text: str) -> tuple[RecordKind, ...]:
    """Read kinds of records from a text as `KINDS_OF_RECORDS`."""
    kinds = []
    for block in text.strip().replace("\n  ", " ").split("\n\n"):
        head, *lines = block.splitlines()
        thing, forms, titles = (tuple(part.split(", ")) for part in head.split("; "))
        kinds.append(RecordKind(thing[0], forms, titles, tuple(map(read_column, lines))))
    return tuple(kinds)


def read_column(line: str) -> Column:
    """Read a column from a line such as ``color, colour = [black, white]: What color is {}?``."""
    names, rest = line.split(" = ")
    values, questions = rest.split(": ", 1)
    choices = values.strip("[]").split(", ")
    value = VALUES[values] if values in VALUES else lambda rng, style, names: draw(rng, choices)
    name = names.split(", ")[0]
    asked = re.findall(r"\S[^?]*\?", questions)
    return Column(tuple(names.split(", ")), value, tuple(each.replace("{name}", name) for each in asked))


def read_tasks(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Read tasks, each with its steps in order."""
    lines = text.strip().replace("\n  ", "; ").splitlines()
    return tuple((task, tuple(steps.split("; "))) for task, steps in (line.split(": ", 1) for line in lines))


RECORD_KINDS, TASKS = read_kinds(KINDS_OF_RECORDS), read_tasks(TASKS_WITH_STEPS)
